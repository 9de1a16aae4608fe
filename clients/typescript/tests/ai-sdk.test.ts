/**
 * The bridge to the AI SDK, with its own scripted model.
 */

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { stepCountIs, tool, type ModelMessage } from "ai";
import * as testing from "ai/test";
import { z } from "zod";

import { generateTextWithConsole, ToolGate } from "cra-client/ai-sdk";

import { TestConsole } from "./support.js";

const ACTIONS = { refund: "payments.refund", note: "note.write", readSecret: "secret.read" };

let console: TestConsole;
let paid: number[] = [];

before(async () => {
  console = await TestConsole.start();
});

after(async () => {
  await console.stop();
});

beforeEach(() => {
  paid = [];
});

const tools = {
  refund: tool({
    description: "refunds an amount",
    inputSchema: z.object({ amount: z.number() }),
    execute: ({ amount }) => {
      paid.push(amount);
      return `refunded ${amount}`;
    },
  }),
  readSecret: tool({
    description: "reads a secret",
    inputSchema: z.object({}),
    execute: () => {
      paid.push(-1);
      return "hunter2";
    },
  }),
  note: tool({
    description: "writes a note",
    inputSchema: z.object({ text: z.string() }),
    execute: async function* ({ text }) {
      yield "writing";
      if (text === "broken") throw new Error("the pencil broke");
      yield `noted ${text}`;
    },
  }),
};

interface Step {
  readonly name: string;
  readonly input: object;
  readonly id: string;
}

/** A model that plays tool calls, and then says goodbye. */
function script(...steps: readonly (readonly Step[])[]) {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  };
  // Each major version of the SDK has a mock of its own model interface.
  const { MockLanguageModelV3, MockLanguageModelV4 } = testing as typeof testing & {
    MockLanguageModelV4?: typeof testing.MockLanguageModelV3;
  };
  const Mock = MockLanguageModelV4 ?? MockLanguageModelV3;
  let turn = 0;
  return new Mock({
    doGenerate: async () => {
      const calls = steps[turn] ?? [];
      turn += 1;
      const content = calls.map(({ name, input, id }) => ({
        type: "tool-call" as const,
        toolCallId: id,
        toolName: name,
        input: JSON.stringify(input),
      }));
      const isLast = content.length === 0;
      return {
        content: isLast ? [{ type: "text" as const, text: "bye" }] : content,
        finishReason: { unified: isLast ? ("stop" as const) : ("tool-calls" as const), raw: undefined },
        usage,
        warnings: [],
      };
    },
  });
}

/** Everything that the model was told with its last call. */
const heard = (model: ReturnType<typeof script>): string => JSON.stringify(model.doGenerateCalls.at(-1)?.prompt);

test("a call is held and passed", async () => {
  const session = await console.session();
  const model = script([{ name: "refund", input: { amount: 5 }, id: "call-1" }]);
  const running = generateTextWithConsole(
    { model, prompt: "refund 5", tools, stopWhen: stepCountIs(5) },
    { session, actions: ACTIONS },
  );
  const [gate] = await console.held();
  assert.deepEqual(paid, []);
  await console.pass(gate);
  const result = await running;
  assert.equal(result.text, "bye");
  assert.deepEqual(paid, [5]);
  assert.match(heard(model), /refunded 5/);
  const [done] = await console.payloads(session.sessionId, "action_completed");
  assert.equal(done?.["result_summary"], "refunded 5");
});

test("calls of one turn are decided one by one, and the model sees the reasons", async () => {
  const session = await console.session();
  const model = script([
    { name: "refund", input: { amount: 1 }, id: "call-1" },
    { name: "readSecret", input: {}, id: "call-2" },
    { name: "refund", input: { amount: 1 }, id: "call-3" },
    { name: "note", input: { text: "hello" }, id: "call-4" },
  ]);
  const messages: ModelMessage[] = [{ role: "user", content: "go" }];
  const running = generateTextWithConsole(
    { model, messages, tools, stopWhen: stepCountIs(5) },
    { session, actions: ACTIONS },
  );
  const [first, second] = await console.held(2);
  await console.pass(first);
  await console.deny("once is enough", second);
  await running;
  assert.deepEqual(paid, [1]);
  for (const words of [/refunded 1/, /once is enough/, /secrets stay where they are/, /noted hello/]) {
    assert.match(heard(model), words);
  }
  const done = await console.payloads(session.sessionId, "action_completed");
  assert.deepEqual(done.map((payload) => payload["result_summary"]).sort(), ["noted hello", "refunded 1"]);
});

test("a tool that fails is reported", async () => {
  const session = await console.session();
  const model = script([{ name: "note", input: { text: "broken" }, id: "call-1" }]);
  await generateTextWithConsole(
    { model, prompt: "go", tools, stopWhen: stepCountIs(5) },
    { session, actions: ACTIONS },
  );
  assert.match(heard(model), /the pencil broke/);
  const [done] = await console.payloads(session.sessionId, "action_completed");
  assert.equal(done?.["success"], false);
});

test("a second call under the same identifier is never run unasked", async () => {
  const session = await console.session();
  const model = script(
    [{ name: "refund", input: { amount: 2 }, id: "call-1" }],
    [{ name: "refund", input: { amount: 2000 }, id: "call-1" }],
  );
  const running = generateTextWithConsole(
    { model, prompt: "go", tools, stopWhen: stepCountIs(5) },
    { session, actions: ACTIONS },
  );
  const ended = running.then(
    () => true,
    () => true,
  );
  await console.pass();
  // Either the SDK refuses the call, or the console is asked again.
  let over = false;
  void ended.then(() => (over = true));
  for (let gate: string | undefined; !over && gate === undefined; ) {
    const listed = (await console.command({ do: "list" })) as { readonly id: string }[];
    gate = listed[0]?.id;
    if (gate !== undefined) await console.deny("not again", gate);
  }
  await ended;
  assert.deepEqual(paid, [2]);
});

test("an approval of another source does not run a tool", async () => {
  const session = await console.session();
  await using gate = new ToolGate({ session, actions: ACTIONS });
  const { refund } = gate.tools({ refund: tools.refund });
  assert.equal(refund.needsApproval, true);
  const options = { toolCallId: "call-1", messages: [] } as unknown as Parameters<NonNullable<typeof refund.execute>>[1];
  await assert.rejects(async () => await refund.execute?.({ amount: 1 }, options), /has not allowed this call/);
  const decided = gate.decide([
    {
      type: "tool-approval-request",
      approvalId: "a-1",
      toolCall: { toolCallId: "call-1", toolName: "refund", input: { amount: 1 } },
    },
  ]);
  await console.pass();
  assert.deepEqual((await decided)?.content, [{ type: "tool-approval-response", approvalId: "a-1", approved: true }]);
  await assert.rejects(async () => await refund.execute?.({ amount: 1000 }, options), /changed after it was allowed/);
  await assert.rejects(async () => await refund.execute?.({ amount: 1 }, options), /has not allowed this call/);
  assert.deepEqual(paid, []);
});

test("a console that is gone denies", async () => {
  const own = await TestConsole.start();
  const session = await (await own.connect({ reconnectMs: 200 })).session("bot");
  const model = script([{ name: "refund", input: { amount: 5 }, id: "call-1" }]);
  const running = generateTextWithConsole(
    { model, prompt: "go", tools, stopWhen: stepCountIs(5) },
    { session, actions: ACTIONS },
  );
  await own.held();
  await own.command({ do: "kill" });
  await running;
  assert.deepEqual(paid, []);
  assert.match(heard(model), /cra: (no console listens|the console closed)/);
  await own.stop();
});
