/**
 * Connections to one console. Each carries one call at a time, so that leaving a call means closing its connection.
 */

import { createConnection, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

import { ConnectionLost, ConsoleUnavailable, CraError } from "./errors.js";
import type { JsonObject } from "./values.js";
import { MAX_ANSWER_BYTES, Request, type AnswerKey, type Fields } from "./wire.js";

const TIMED_OUT = "the console did not answer in time";
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;

/** Longest time that a timer of Node takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A request to send. */
export interface Call {
  readonly method: string;
  readonly params: JsonObject;
  readonly timeoutMs: number;
  /** May be sent again when the connection was lost on the way. */
  readonly retry: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Set when the request was sent again, so that its first sending may have been taken. */
  wasRepeated?: boolean;
}

/** Settings of the connections. */
export interface TransportSettings {
  readonly socket: string;
  readonly key: AnswerKey;
  readonly reconnectMs: number;
}

interface Pending {
  readonly resolve: (line: Buffer) => void;
  readonly reject: (error: Error) => void;
}

class Connection {
  #pending: Pending | undefined;
  #received: Buffer[] = [];
  #size = 0;
  isOpen = true;

  private constructor(readonly socket: Socket) {
    socket.on("data", (some: Buffer) => this.#take(some));
    socket.on("close", () => this.#lose());
    socket.on("error", () => this.#lose());
  }

  static async open(path: string, cancel: Cancellation): Promise<Connection> {
    const socket = createConnection({ path });
    return await cancel.during(
      () => socket.destroy(),
      new Promise<Connection>((resolve, reject) => {
        const failed = (error: NodeJS.ErrnoException) =>
          reject(new ConnectionLost(`no console listens at \`${path}\` (${error.code ?? error.message})`, false));
        socket.once("error", failed);
        socket.once("connect", () => {
          socket.off("error", failed);
          resolve(new Connection(socket));
        });
      }),
    );
  }

  async exchange(line: Buffer, cancel: Cancellation): Promise<Buffer> {
    this.socket.ref();
    const answer = new Promise<Buffer>((resolve, reject) => {
      this.#pending = { resolve, reject };
    });
    // It may be gone since it was taken from the idle ones.
    if (!this.isOpen) this.#lose();
    else this.socket.write(line);
    return await cancel.during(() => this.close(), answer);
  }

  #take(some: Buffer): void {
    const pending = this.#pending;
    // The console says nothing unasked, so this is its last word before it closes an idle connection.
    if (pending === undefined) return this.close();
    this.#received.push(some);
    this.#size += some.length;
    if (this.#size > MAX_ANSWER_BYTES) {
      this.#settle()?.reject(new ConsoleUnavailable("the answer is too long"));
      return this.close();
    }
    if (some.at(-1) !== 0x0a) return;
    const line = Buffer.concat(this.#received).subarray(0, -1);
    this.#settle()?.resolve(line);
  }

  #settle(): Pending | undefined {
    const pending = this.#pending;
    this.#pending = undefined;
    this.#received = [];
    this.#size = 0;
    return pending;
  }

  #lose(): void {
    this.isOpen = false;
    this.#settle()?.reject(new ConnectionLost("the console closed the connection", true));
  }

  close(): void {
    this.isOpen = false;
    this.socket.destroy();
  }
}

/** Deadline and signal of a call. */
class Cancellation {
  constructor(
    readonly deadline: number,
    readonly signal: AbortSignal | undefined,
  ) {}

  get leftMs(): number {
    return Math.max(this.deadline - performance.now(), 0);
  }

  /** Waits for a promise, and runs `leave` when the time is up or the caller gives up. */
  async during<T>(leave: () => void, promise: Promise<T>): Promise<T> {
    // The promise settles later, when it was left.
    promise.catch(() => undefined);
    this.signal?.throwIfAborted();
    let timer: NodeJS.Timeout | undefined;
    let abort: (() => void) | undefined;
    const ended = new Promise<never>((_, reject) => {
      const left = Math.min(this.leftMs, MAX_TIMER_MS);
      timer = setTimeout(() => reject(new ConsoleUnavailable(TIMED_OUT)), left);
      abort = () => reject(this.signal?.reason as Error);
      this.signal?.addEventListener("abort", abort);
    });
    try {
      return await Promise.race([promise, ended]);
    } catch (error) {
      leave();
      throw error;
    } finally {
      clearTimeout(timer);
      if (abort !== undefined) this.signal?.removeEventListener("abort", abort);
    }
  }
}

/** Connections to one console. */
export class Transport {
  #idle: Connection[] = [];
  #number = 0;
  #isClosed = false;

  constructor(readonly settings: TransportSettings) {}

  /** Sends a call, and sends it again after a lost connection where that is safe. */
  async call(call: Call, reconnectMs = this.settings.reconnectMs): Promise<Fields> {
    const cancel = new Cancellation(performance.now() + call.timeoutMs, call.signal);
    let pauseMs = FIRST_PAUSE_MS;
    let lostAt: number | undefined;
    for (;;) {
      try {
        return await this.#attempt(call, cancel);
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        if (error.sent && !call.retry) {
          throw new ConsoleUnavailable(`${error.message}; the console may have taken \`${call.method}\``);
        }
        const now = performance.now();
        if (error.sent) {
          call.wasRepeated = true;
          pauseMs = FIRST_PAUSE_MS;
        }
        lostAt = lostAt === undefined || error.sent ? now : lostAt;
        if (now + pauseMs >= Math.min(lostAt + reconnectMs, cancel.deadline)) {
          throw new ConsoleUnavailable(error.message);
        }
      }
      await pause(pauseMs, undefined, { signal: call.signal });
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  async #attempt(call: Call, cancel: Cancellation): Promise<Fields> {
    if (this.#isClosed) throw new ConsoleUnavailable("this client was closed");
    call.signal?.throwIfAborted();
    this.#number += 1;
    const request = new Request(this.#number, call.method, call.params, this.settings.key);
    const connection = this.#takeIdle() ?? (await Connection.open(this.settings.socket, cancel));
    try {
      const result = request.read(await connection.exchange(request.line, cancel));
      this.#putBack(connection);
      return result;
    } catch (error) {
      // A wrong or unsigned answer closes the connection, too: the next line might answer this request.
      if (error instanceof CraError && !(error instanceof ConsoleUnavailable)) this.#putBack(connection);
      else connection.close();
      throw error;
    }
  }

  #takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isOpen) return connection;
    }
  }

  #putBack(connection: Connection): void {
    if (this.#isClosed) return connection.close();
    // An idle connection does not keep the program running.
    connection.socket.unref();
    this.#idle.push(connection);
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle) connection.close();
    this.#idle = [];
  }
}
