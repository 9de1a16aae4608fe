/**
 * The client: console, session and run.
 */

import { randomBytes, randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";

import { AnswersRejected, ConsoleUnavailable, Denied, InvalidRequest, NotReported, QuestionsAsked } from "./errors.js";
import { accepted, answered, Given, resolved, text, texts, turned } from "./results.js";
import type { Accepted, Answered, Resolution, Turned } from "./results.js";
import { Transport, type Call } from "./transport.js";
import { copyObject, copyValue, writeJson, type JsonObject, type JsonValue } from "./values.js";
import { AnswerKey, type Fields } from "./wire.js";

/** Environment variable with the public key of the console's answers. */
export const KEY_VARIABLE = "CRA_ANSWER_KEY";

/** Time that the console has for an answer after the deadline that it was told. */
const GRACE_MS = 5_000;

/** The console takes reports of at most 64 KiB. */
const MAX_REPORT_BYTES = 60_000;

/** Answers of the agent to one gate, until the client gives up. */
const MAX_ANSWERS = 3;

/** Latest time that a date has. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** Answers to a gate: by checkpoint, then by question. */
export type Answers = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Options of a client. */
export interface ConsoleOptions {
  /** Where the console listens. By default where `cra` does. */
  readonly socket?: string;
  /**
   * Text that `cra trace key --answers` prints, by default from the variable CRA_ANSWER_KEY. Get it from the operator,
   * never from the socket.
   */
  readonly key?: string;
  /** Time after which a request that is still held counts as denied. Default: half an hour. */
  readonly actionTimeoutMs?: number;
  /** Time for every other call. Default: 30 seconds. */
  readonly callTimeoutMs?: number;
  /** Time for which a lost connection is tried again. Default: 10 seconds. */
  readonly reconnectMs?: number;
  /** Time that the console has for an answer after the deadline that it was told. Default: 5 seconds. */
  readonly graceMs?: number;
}

/** Options of a session. */
export interface SessionOptions {
  readonly intent?: string;
  readonly version?: string;
  readonly apiKey?: string;
  /** Name of the session. With `key`, it resumes a session. */
  readonly sessionId?: string;
  readonly key?: string;
  /** Answers questions that the Atlas asks the agent. Without an answer, the request is denied. */
  readonly onQuestions?: (asked: QuestionsAsked) => Answers | undefined | Promise<Answers | undefined>;
  /** Leaves the session open at the end of its block. */
  readonly keepOpen?: boolean;
}

/** Options of a request. */
export interface RequestOptions {
  /** Time after which the request counts as denied. */
  readonly timeoutMs?: number;
  /** Name of the run. A request that is sent again under its name joins the first while that waits. */
  readonly reference?: string;
  /** A resolution that the request relies on. */
  readonly resolution?: string;
  /** Leaves the request. */
  readonly signal?: AbortSignal;
}

/** Returns the path where `cra` listens in this environment. */
export function defaultSocket(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const named = environment["CRA_SOCKET"];
  if (named) return named;
  const data = environment["CRA_DATA_DIR"];
  const runtime = environment["XDG_RUNTIME_DIR"];
  if (!data && runtime) return join(runtime, "cra", "console.sock");
  const home = environment["XDG_DATA_HOME"] || join(homedir(), ".local", "share");
  return join(data || join(home, "cra"), "run", "console.sock");
}

/** A client of a console. Make one with `CraConsole.connect`. */
export class CraConsole {
  readonly #transport: Transport;
  readonly #timing: Timing;

  private constructor(transport: Transport, timing: Timing) {
    this.#transport = transport;
    this.#timing = timing;
  }

  /** Connects to the console, and verifies that it has the key. */
  static async connect(options: ConsoleOptions = {}): Promise<CraConsole> {
    const key = options.key ?? process.env[KEY_VARIABLE];
    if (!key) {
      throw new InvalidRequest(
        `no key: give \`key\`, or set ${KEY_VARIABLE}, to the text that \`cra trace key --answers\` prints`,
      );
    }
    const timing = {
      actionMs: options.actionTimeoutMs ?? 1_800_000,
      callMs: options.callTimeoutMs ?? 30_000,
      graceMs: options.graceMs ?? GRACE_MS,
    };
    const transport = new Transport({
      socket: options.socket ?? defaultSocket(),
      key: new AnswerKey(key),
      reconnectMs: options.reconnectMs ?? 10_000,
    });
    const console = new CraConsole(transport, timing);
    try {
      await console.status();
    } catch (error) {
      console.close();
      throw error;
    }
    return console;
  }

  /** Returns nothing if the console can record, or its problem. A console that cannot record denies everything. */
  async status(): Promise<string | undefined> {
    const call: Call = { method: "status", params: {}, timeoutMs: this.#timing.callMs, retry: true };
    const result = await this.#transport.call(call, 0);
    if (result["recording"] === true) return undefined;
    return text(result["problem"]) ?? "the console does not record";
  }

  /** Starts a session of an agent, or resumes it. */
  async session(agent: string, options: SessionOptions = {}): Promise<Session> {
    if (options.key !== undefined && options.sessionId === undefined) {
      throw new InvalidRequest("a key belongs to a session: give its `sessionId`, too");
    }
    const session = new Session(this.#transport, this.#timing, agent, options);
    await session.start();
    return session;
  }

  /** Closes the connections. Sessions stay open. */
  close(): void {
    this.#transport.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

interface Timing {
  readonly actionMs: number;
  readonly callMs: number;
  readonly graceMs: number;
}

/** A session of an agent. */
export class Session {
  /** Name of the session in the record. */
  readonly sessionId: string;
  /** Secret of the session. Another process needs it to go on with the session. */
  readonly key: string;
  /** Gates before the session. Requests wait behind them. */
  held: readonly string[] = [];
  readonly #transport: Transport;
  readonly #timing: Timing;
  readonly #agent: string;
  readonly #options: SessionOptions;
  #given = new Given();

  constructor(transport: Transport, timing: Timing, agent: string, options: SessionOptions) {
    this.#transport = transport;
    this.#timing = timing;
    this.#agent = agent;
    this.#options = options;
    // The client chooses name and key, so that a lost `session.start` can be repeated.
    this.sessionId = options.sessionId ?? randomUUID();
    this.key = options.key ?? randomBytes(16).toString("hex");
  }

  #prepare(method: string, params: Readonly<Record<string, unknown>>, more: Partial<Call> = {}): Call {
    const whole = copyObject({ ...params, session: this.sessionId, key: this.key });
    return { method, params: whole, timeoutMs: this.#timing.callMs, retry: false, ...more };
  }

  async #send(method: string, params: Readonly<Record<string, unknown>>, more: Partial<Call> = {}): Promise<Fields> {
    return await this.#transport.call(this.#prepare(method, params, more));
  }

  #keep<T extends { readonly given: Given }>(result: T): T {
    if (!result.given.isEmpty) this.#given = this.#given.with(result.given);
    return result;
  }

  /** Returns the contexts and guidance that came since the last time, for the next prompt. */
  takeGiven(): Given {
    const given = this.#given;
    this.#given = new Given();
    return given;
  }

  /** Starts the session, or resumes it. `CraConsole.session` does so. */
  async start(): Promise<void> {
    const { intent, version, apiKey } = this.#options;
    const params = { agent: this.#agent, intent, version, api_key: apiKey };
    const result = await this.#send("session.start", params, { retry: true });
    this.held = texts(result["held"]);
    this.#keep({ given: Given.of(result) });
  }

  /** Ends the session. Ending it twice is no error. */
  async end(
    status: "completed" | "cancelled" | "error" | "timeout" = "completed",
    summary?: string,
  ): Promise<void> {
    try {
      const result = await this.#send("session.end", { status, summary }, { retry: true });
      this.#keep({ given: Given.of(result) });
    } catch (error) {
      if (!(error instanceof Denied && error.code === "ended")) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#options.keepOpen !== true) await this.end();
  }

  /**
   * Asks to run an action, and waits while it is held. Only a returned run is a permission, for one run. Call `complete`
   * or `fail` of the run afterwards; `action` does that automatically.
   */
  async request(action: string, params: object = {}, options: RequestOptions = {}): Promise<Run> {
    const copied = copyObject(params);
    const timeoutMs = options.timeoutMs ?? this.#timing.actionMs;
    const end = performance.now() + timeoutMs;
    const reference = options.reference ?? `run-${randomUUID()}`;
    const deadline = new Date(Math.min(Date.now() + timeoutMs, LAST_MS)).toISOString();
    for (;;) {
      const left = () => Math.max(end - performance.now(), 0) + this.#timing.graceMs;
      const asking = { action, params: copied, deadline, reference, resolution: options.resolution };
      let result: Fields;
      try {
        result = await this.#send("action.request", asking, {
          retry: true,
          timeoutMs: left(),
          signal: options.signal,
        });
      } catch (error) {
        if (!(error instanceof QuestionsAsked)) throw error;
        result = await this.#answer(error, { timeoutMs: left(), signal: options.signal });
        if (!("execution" in result)) {
          if (performance.now() < end) continue;
          throw new Denied("the time of the request is up", { code: "expired", gate: error.gate });
        }
      }
      const execution = text(result["execution"]);
      if (!execution) throw new ConsoleUnavailable("the answer names no execution, so nothing is allowed");
      const { given } = this.#keep({ given: Given.of(result) });
      const approvedBy = text(result["approved_by"]);
      const report = (outcome: Fields) => this.#report(execution, outcome);
      return new Run(action, copied, reference, execution, given, approvedBy, report);
    }
  }

  async #answer(asked: QuestionsAsked, more: Partial<Call>): Promise<Fields> {
    for (let attempt = 0; attempt < MAX_ANSWERS; attempt += 1) {
      const answers = await this.#options.onQuestions?.(asked);
      if (answers === undefined) break;
      try {
        return await this.#send("checkpoint.answer", { gate: asked.gate, answers }, more);
      } catch (error) {
        if (!(error instanceof AnswersRejected)) throw error;
        asked = new QuestionsAsked(error.message, asked.asked, error.problems);
      }
    }
    throw asked;
  }

  /**
   * Asks to run an action, runs the function once it is allowed, and reports its outcome. The function gets the run, and
   * its returned value is the result.
   */
  async action<T>(
    action: string,
    params: object,
    run: (run: Run) => T | Promise<T>,
    options: RequestOptions = {},
  ): Promise<T> {
    const allowed = await this.request(action, params, options);
    let result: T;
    try {
      result = await run(allowed);
    } catch (error) {
      const name = error instanceof Error ? error.name : "Error";
      // The error of the function is the one that the caller needs.
      await allowed.fail(error instanceof Error ? error.message : String(error), name).catch(() => undefined);
      throw error;
    }
    await allowed.complete(result);
    return result;
  }

  /**
   * Returns a function that asks first, with its argument as parameters. The inner function gets the copy that was
   * allowed, so that a change of the argument while it is held has no effect.
   */
  gate<I extends object, O>(
    action: string,
    run: (input: I) => O | Promise<O>,
    options: RequestOptions = {},
  ): (input: I) => Promise<O> {
    return (input) => this.action(action, input, (allowed) => run(allowed.params as unknown as I), options);
  }

  async #report(execution: string, outcome: Fields): Promise<Given> {
    const call = this.#prepare("action.completed", { execution, ...outcome }, { retry: true });
    try {
      const result = await this.#transport.call(call);
      return this.#keep({ given: Given.of(result) }).given;
    } catch (error) {
      // The first of two reports was taken, and its answer was lost.
      if (call.wasRepeated && error instanceof Denied && error.code === "bad_request") return new Given();
      const reason = error instanceof Error ? error.message : String(error);
      throw new NotReported(`the run \`${execution}\` was not reported: ${reason}`, { cause: error });
    }
  }

  /** Reports what the agent was given to do. Use `modifiedInput`, where there is one, in its place. */
  async input(
    text: string,
    source: "user" | "system" | "other_agent" = "user",
    options: { readonly timeoutMs?: number } = {},
  ): Promise<Accepted> {
    const more = options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs };
    return this.#keep(accepted(await this.#send("input", { text, source }, more)));
  }

  /** Asks for contexts by name or by words, or fires an interactive checkpoint. */
  async context(options: {
    readonly hints?: readonly string[];
    readonly query?: string;
    readonly checkpoint?: string;
  }): Promise<Accepted> {
    const retry = options.checkpoint === undefined;
    return this.#keep(accepted(await this.#send("context.request", options, { retry })));
  }

  /** Says whether a context helped. */
  async feedback(
    contextId: string,
    helpful: boolean,
    options: { readonly reason?: string; readonly usageOutcome?: "applied" | "ignored" | "partial" } = {},
  ): Promise<void> {
    const { reason, usageOutcome } = options;
    await this.#send("context.feedback", { context_id: contextId, helpful, reason, usage_outcome: usageOutcome });
  }

  /** Asks what the agent may do now. It permits nothing. */
  async resolve(
    actions?: readonly { readonly action: string; readonly params?: object }[],
    input?: string,
  ): Promise<Resolution> {
    return resolved(await this.#send("resolve", { actions, input }, { retry: true }));
  }

  /** Answers a gate that the agent may answer. Send the identical request again afterwards. */
  async answerCheckpoint(gate: string, answers: Answers): Promise<Answered> {
    const params = { gate, answers, release: "repeat" };
    return this.#keep(answered(await this.#send("checkpoint.answer", params)));
  }

  /** Takes a turn of a thread. `cra turn --help` lists the fields. */
  async turn(
    turn: { readonly message_id: string; readonly message: string; readonly [field: string]: unknown },
    thread?: string,
  ): Promise<Turned> {
    return this.#keep(turned(await this.#send("turn", { turn, thread })));
  }

  /** Hands a thread over to another session. */
  async handOver(to: string, thread?: string): Promise<void> {
    await this.#send("thread.hand_over", { to, thread });
  }

  /** Reports an error. `recovered` takes the `error` of the result. */
  async error(
    errorType: string,
    message: string,
    options: { readonly errorCode?: string; readonly recoverable?: boolean; readonly stackTrace?: string } = {},
  ): Promise<Accepted> {
    const { errorCode, recoverable, stackTrace } = options;
    const params = {
      error_type: errorType,
      message: reportText(message),
      error_code: errorCode,
      recoverable: recoverable ?? false,
      stack_trace: stackTrace === undefined ? undefined : reportText(stackTrace),
    };
    return this.#keep(accepted(await this.#send("error", params)));
  }

  /** Says that a reported error was dealt with. */
  async recovered(error: string, method: string, success = true): Promise<void> {
    await this.#send("error.recovered", { error, method, success });
  }

  /** Reports what the agent produced. The record keeps a hash and a size. */
  async output(
    text: string,
    options: { readonly outputType?: "text" | "action" | "structured"; readonly containsAction?: boolean } = {},
  ): Promise<void> {
    const { outputType, containsAction } = options;
    await this.#send("output", { text, output_type: outputType, contains_action: containsAction });
  }
}

/** Permission for one run of an action. */
export class Run {
  #isReported = false;
  readonly #report: (outcome: Fields) => Promise<Given>;

  constructor(
    readonly action: string,
    /** Copy of the parameters that were allowed. */
    readonly params: JsonObject,
    readonly reference: string,
    readonly execution: string,
    readonly given: Given,
    /** The operator who let the request pass, if one had to. */
    readonly approvedBy: string | undefined,
    report: (outcome: Fields) => Promise<Given>,
  ) {
    this.#report = report;
  }

  /** Reports that the action ran. Later reports of the run do nothing. */
  async complete(result?: unknown): Promise<Given> {
    return await this.#send({ result: reportText(result) });
  }

  /** Reports that the action failed. Later reports of the run do nothing. */
  async fail(message: string, code = "Error"): Promise<Given> {
    return await this.#send({ error: { code: reportText(code).slice(0, 200), message: reportText(message) } });
  }

  async #send(outcome: Fields): Promise<Given> {
    if (this.#isReported) return new Given();
    this.#isReported = true;
    return await this.#report(outcome);
  }

  /** Reports a run that was left without a report as failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.fail("the run was left without a result", "abandoned");
  }
}

/** Returns a value as the text of a report. Long texts are cut. */
function reportText(value: unknown): string {
  let written = "";
  if (typeof value === "string") {
    written = value;
  } else if (value !== undefined && value !== null) {
    try {
      written = writeJson(copyValue(value, "", 0) satisfies JsonValue);
    } catch {
      written = String(value);
    }
  }
  const bytes = Buffer.from(written.toWellFormed());
  if (bytes.length <= MAX_REPORT_BYTES) return bytes.toString("utf8");
  let end = MAX_REPORT_BYTES;
  // Not within a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, end).toString("utf8")} ... (cut by the client)`;
}

