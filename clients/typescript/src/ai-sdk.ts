/**
 * Bridge to the AI SDK (`ai`): tool calls that need approval wait for the console.
 *
 * ```ts
 * const result = await generateTextWithConsole(
 *   { model, prompt: "Refund 5 euros", tools: { refund }, stopWhen: stepCountIs(5) },
 *   { session, actions: { refund: "payments.refund" } },
 * );
 * ```
 *
 * Every tool with an `execute` function gets `needsApproval: true`, so that the SDK stops before it. The console is asked
 * about each stopped call, and its decision goes back as a `tool-approval-response`. The model gets the reason of a
 * denial. A tool runs only with a permission for exactly this call and this input, also where another source has approved it.
 * Tools without `execute`, and tools that the provider runs, are not held.
 */

import {
  generateText,
  type ModelMessage,
  type ToolApprovalResponse,
  type ToolModelMessage,
  type ToolSet,
} from "ai";

import type { Run, Session } from "./console.js";
import { CraError, Denied, InvalidRequest } from "./errors.js";
import { copyObject, writeJson, type JsonObject } from "./values.js";

/** Action and parameters of a tool call. */
export interface ToolAction {
  readonly action: string;
  readonly params: object;
}

/** Options of the bridge. */
export interface ToolGateOptions {
  readonly session: Session;
  /** Names of actions by name of the tool, or a function. A tool without a name here is `tool.NAME`. */
  readonly actions?: Readonly<Record<string, string>> | ((tool: string, input: JsonObject) => ToolAction);
  /** Time for which a call may be held. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** A part of a model's answer that stops for an approval. */
interface StoppedPart {
  readonly type: string;
  readonly approvalId?: string;
  readonly toolCall?: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown };
}

interface Allowed {
  readonly run: Run;
  readonly fingerprint: string;
}

type Execute = (input: unknown, options: { readonly toolCallId: string }) => unknown;

/** Asks the console about tool calls, and remembers what was allowed until it ran. */
export class ToolGate {
  readonly #options: ToolGateOptions;
  readonly #allowed = new Map<string, Allowed>();

  constructor(options: ToolGateOptions) {
    this.#options = options;
  }

  /** Returns tools that stop for an approval, and that run only with a permission of the console. */
  tools<TOOLS extends ToolSet>(tools: TOOLS): TOOLS {
    const gated = Object.entries(tools).map(([name, tool]) => {
      const execute = (tool as { execute?: Execute }).execute;
      if (typeof execute !== "function") return [name, tool] as const;
      const run: Execute = (input, options) => this.#execute(name, input, options, execute.bind(tool));
      return [name, { ...tool, needsApproval: true, execute: run }] as const;
    });
    return Object.fromEntries(gated) as unknown as TOOLS;
  }

  /**
   * Asks the console about the stopped calls in a model's answer. Returns the message with all decisions, to be sent
   * after the answer's own messages, or nothing where no call stopped.
   */
  async decide(content: readonly StoppedPart[]): Promise<ToolModelMessage | undefined> {
    const stopped = content.filter((part) => part.type === "tool-approval-request");
    if (stopped.length === 0) return undefined;
    return { role: "tool", content: await Promise.all(stopped.map((part) => this.#response(part))) };
  }

  async #response({ approvalId, toolCall }: StoppedPart): Promise<ToolApprovalResponse> {
    const answer = { type: "tool-approval-response" as const, approvalId: approvalId ?? "" };
    try {
      if (toolCall === undefined || !toolCall.toolCallId || this.#allowed.has(toolCall.toolCallId)) {
        throw new InvalidRequest("the tool call has no identifier of its own");
      }
      const input = copyObject(toolCall.input);
      const { action, params } = this.#action(toolCall.toolName, input);
      const { timeoutMs, signal } = this.#options;
      const more = { ...(timeoutMs === undefined ? {} : { timeoutMs }), ...(signal === undefined ? {} : { signal }) };
      const run = await this.#options.session.request(action, params, more);
      this.#allowed.set(toolCall.toolCallId, { run, fingerprint: fingerprint(toolCall.toolName, input) });
      return { ...answer, approved: true };
    } catch (error) {
      if (!(error instanceof CraError)) throw error;
      const reason = error instanceof Denied ? error.explanation : error.message;
      return { ...answer, approved: false, reason: `cra: ${reason}` };
    }
  }

  #action(tool: string, input: JsonObject): ToolAction {
    const { actions } = this.#options;
    if (typeof actions === "function") return actions(tool, input);
    const named = actions !== undefined && Object.hasOwn(actions, tool) ? actions[tool] : undefined;
    return { action: named ?? `tool.${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`, params: input };
  }

  #execute(name: string, input: unknown, options: { readonly toolCallId: string }, execute: Execute): unknown {
    const allowed = this.#allowed.get(options.toolCallId);
    this.#allowed.delete(options.toolCallId);
    if (allowed === undefined) {
      throw new Denied(`the console has not allowed this call of \`${name}\``, { code: "withdrawn" });
    }
    return this.#report(allowed, () => {
      if (fingerprint(name, copyObject(input)) !== allowed.fingerprint) {
        throw new Denied(`the call of \`${name}\` changed after it was allowed`, { code: "changed" });
      }
      return execute(input, options);
    });
  }

  /** Runs a tool and reports its outcome. The last value of a tool that yields is its result. */
  #report({ run }: Allowed, execute: () => unknown): unknown {
    const fail = async (error: unknown): Promise<never> => {
      const [message, name] = error instanceof Error ? [error.message, error.name] : [String(error), "Error"];
      await run.fail(message, name).catch(() => undefined);
      throw error;
    };
    let returned: unknown;
    try {
      returned = execute();
    } catch (error) {
      return fail(error);
    }
    if (isAsyncIterable(returned)) return reportLast(returned, run, fail);
    return Promise.resolve(returned).then(async (result) => {
      await run.complete(result);
      return result;
    }, fail);
  }

  /** Reports calls that were allowed and never ran. */
  async close(): Promise<void> {
    const left = [...this.#allowed.values()];
    this.#allowed.clear();
    await Promise.allSettled(left.map(({ run }) => run.fail("the tool did not run", "abandoned")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function* reportLast(
  values: AsyncIterable<unknown>,
  run: Run,
  fail: (error: unknown) => Promise<never>,
): AsyncGenerator<unknown> {
  let last: unknown;
  try {
    for await (const value of values) {
      last = value;
      yield value;
    }
  } catch (error) {
    await fail(error);
  }
  await run.complete(last);
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function fingerprint(tool: string, input: JsonObject): string {
  return writeJson([tool, sorted(input)]);
}

function sorted<T>(value: T): T {
  if (Array.isArray(value)) return value.map(sorted) as T;
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, item]) => [name, sorted(item as unknown)])) as T;
}

/** Options of `generateText`, without `prompt` where there are `messages`. */
export type GenerateTextOptions<TOOLS extends ToolSet> = Parameters<typeof generateText<TOOLS>>[0];

/**
 * Calls `generateText`, asks the console about the calls that stop, and goes on with its decisions until no call stops.
 * As in the SDK, `stopWhen` decides how many steps follow.
 */
export async function generateTextWithConsole<TOOLS extends ToolSet>(
  options: GenerateTextOptions<TOOLS>,
  gateOptions: ToolGateOptions,
): Promise<Awaited<ReturnType<typeof generateText<TOOLS>>>> {
  await using gate = new ToolGate(gateOptions);
  const { prompt, messages: given, ...rest } = options;
  const first: ModelMessage[] = typeof prompt === "string" ? [{ role: "user", content: prompt }] : [...(prompt ?? [])];
  const messages = [...first, ...(given ?? [])];
  const more = options.tools === undefined ? {} : { tools: gate.tools(options.tools) };
  for (;;) {
    const result = await generateText<TOOLS>({ ...rest, ...more, messages } as GenerateTextOptions<TOOLS>);
    const decided = await gate.decide(result.content as readonly StoppedPart[]);
    if (decided === undefined) return result;
    messages.push(...result.response.messages, decided);
  }
}
