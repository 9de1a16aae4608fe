/**
 * A real console, and impostors in its place.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { unlinkSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { CraConsole, type ConsoleOptions, type Session, type SessionOptions } from "cra-client";

/** Folder of the repository. `clients/test` runs these tests in a copy of the package. */
export const REPOSITORY = process.env["CRA_REPOSITORY"] ?? fileURLToPath(new URL("../../..", import.meta.url));

/** Longest wait for a state. A test that passes never waits for it. */
const DEADLINE_MS = 60_000;

interface Ready {
  readonly socket: string;
  readonly key: string;
  readonly folder: string;
}

interface Answer {
  readonly ok?: unknown;
  readonly error?: string;
}

/** A console that an operator works line by line. */
export class TestConsole {
  readonly #waiting: ((answer: Answer) => void)[] = [];

  private constructor(
    readonly ready: Ready,
    readonly process: ChildProcess,
  ) {}

  static async start(): Promise<TestConsole> {
    const helper = join(REPOSITORY, "clients", "testing", "console.py");
    const helperProcess = spawn("python3", [helper], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: helperProcess.stdout });
    return await new Promise((resolve, reject) => {
      let console: TestConsole | undefined;
      lines.on("line", (line) => {
        if (console === undefined) {
          console = new TestConsole(JSON.parse(line) as Ready, helperProcess);
          resolve(console);
        } else {
          console.#waiting.shift()?.(JSON.parse(line) as Answer);
        }
      });
      helperProcess.on("exit", () => {
        reject(new Error("the helper ended"));
        if (console === undefined) return;
        for (const waiting of console.#waiting) waiting({ error: "the helper ended" });
      });
    });
  }

  async command(command: Readonly<Record<string, unknown>>): Promise<unknown> {
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.push(resolve);
      this.process.stdin?.write(`${JSON.stringify(command)}\n`);
    });
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.ok;
  }

  /** Waits until this many requests are held, and returns their names. */
  async held(count = 1): Promise<string[]> {
    return (await this.command({ do: "held", count })) as string[];
  }

  async pass(gate?: string): Promise<void> {
    await this.command({ do: "pass", gate });
  }

  async deny(reason: string, gate?: string): Promise<void> {
    await this.command({ do: "deny", reason, gate });
  }

  async payloads(session: string, type: string): Promise<Record<string, unknown>[]> {
    return (await this.command({ do: "payloads", session, type })) as Record<string, unknown>[];
  }

  async connect(options: ConsoleOptions = {}): Promise<CraConsole> {
    return await CraConsole.connect({ socket: this.ready.socket, key: this.ready.key, ...options });
  }

  async session(options: SessionOptions = {}): Promise<Session> {
    return await (await this.connect()).session("bot", options);
  }

  /** Ends the console and its helper. */
  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.process.on("exit", () => resolve());
      this.process.stdin?.end();
    });
  }
}

/** Waits for a state. */
export async function waitUntil(what: string, isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`time is up, and never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Makes up an answer that allows everything. */
function allowed(request: { readonly id: unknown }): string {
  const result = { execution: "01a1ee3c-88d1-7682-89c2-4327c62c2902", given: {}, recording: true };
  return JSON.stringify({ id: request.id, jsonrpc: "2.0", result });
}

/** Ways in which an impostor answers; see `impostor.py`. */
export type Trick = "allow" | "prove" | "garbage" | "busy" | "hang" | "relay" | "change" | "replay";

/** A process in the place of the console. */
export class Impostor {
  readonly methods: string[] = [];
  readonly #first = new Map<string, string>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(
    readonly path: string,
    public trick: Trick,
    readonly real: string | undefined,
  ) {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async listen(path: string, trick: Trick, real?: string): Promise<Impostor> {
    const impostor = new Impostor(path, trick, real);
    await new Promise<void>((resolve) => impostor.#server.listen(path, resolve));
    return impostor;
  }

  #serve(socket: Socket): void {
    this.#add(socket);
    const console = this.real === undefined ? undefined : createConnection(this.real);
    if (console !== undefined) this.#add(console);
    console?.on("close", () => socket.destroy());
    socket.on("close", () => console?.destroy());
    const waiting: string[] = [];
    createInterface({ input: socket }).on("line", (line) => {
      const request = JSON.parse(line) as { readonly id: unknown; readonly method: string };
      this.methods.push(request.method);
      if (this.trick === "hang") return;
      if (console === undefined) return void socket.write(`${this.#madeUp(request)}\n`);
      waiting.push(line);
      console.write(`${line}\n`);
    });
    if (console === undefined) return;
    createInterface({ input: console }).on("line", (line) => {
      const request = JSON.parse(waiting.shift() ?? "{}") as { readonly id: unknown; readonly method: string };
      if (!this.#first.has(request.method)) this.#first.set(request.method, line);
      let answer = line;
      if (this.trick === "replay") answer = this.#first.get(request.method) ?? line;
      const read = JSON.parse(line) as { readonly error?: unknown; readonly proof?: string };
      if (this.trick === "change" && read.error !== undefined) {
        answer = `${allowed(request).slice(0, -1)},"proof":"${read.proof ?? ""}"}`;
      }
      socket.write(`${answer}\n`);
    });
  }

  #add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #madeUp(request: { readonly id: unknown }): string {
    switch (this.trick) {
      case "garbage":
        return "HTTP/1.1 200 OK";
      case "busy":
        return JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32004, message: "busy" } });
      case "prove":
        return `${allowed(request).slice(0, -1)},"proof":"${randomBytes(64).toString("base64")}"}`;
      default:
        return allowed(request);
    }
  }

  /** Cuts all connections. New ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Stops listening. */
  close(): void {
    this.#server.close();
    this.cut();
    try {
      unlinkSync(this.path);
    } catch {
      // Closing the server removes it, too.
    }
  }
}
