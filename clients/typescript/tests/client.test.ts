/**
 * The client, against the real console.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import {
  AnswersRejected,
  ConsoleUnavailable,
  CraConsole,
  defaultSocket,
  Denied,
  InvalidRequest,
  NotReported,
  QuestionsAsked,
  UnverifiedAnswer,
  type Run,
} from "cra-client";

import { Impostor, REPOSITORY, TestConsole, waitUntil, type Trick } from "./support.js";

/** Part of a module that the package does not export. */
interface Wire {
  readonly AnswerKey: new (text: string) => {
    verify(challenge: Uint8Array, request: Uint8Array, line: Buffer): Buffer;
  };
}

let console: TestConsole;

before(async () => {
  console = await TestConsole.start();
});

after(async () => {
  await console.stop();
});

/** Fails the test: an action ran that was not allowed. */
const mustNotRun = (): never => assert.fail("it ran");

/** A copy of the console on a store of its own. */
async function withConsole(test: (own: TestConsole) => Promise<void>): Promise<void> {
  const own = await TestConsole.start();
  try {
    await test(own);
  } finally {
    await own.stop();
  }
}

describe("actions", () => {
  test("an allowed action runs and its result is recorded", async () => {
    const session = await console.session({ intent: "take notes" });
    const result = await session.action("note.write", { text: "hello" }, (run) => {
      assert.deepEqual(run.params, { text: "hello" });
      assert.equal(run.approvedBy, undefined);
      return "12 words";
    });
    assert.equal(result, "12 words");
    await session.end();
    const [done] = await console.payloads(session.sessionId, "action_completed");
    assert.equal(done?.["success"], true);
    assert.equal(done["result_summary"], "12 words");
  });

  test("a failure in the function is recorded and thrown", async () => {
    const session = await console.session();
    const failing = session.action("note.write", {}, () => {
      throw new RangeError("no such row");
    });
    await assert.rejects(failing, RangeError);
    const [done] = await console.payloads(session.sessionId, "action_completed");
    assert.deepEqual(done?.["error"], { code: "RangeError", message: "no such row" });
  });

  test("sessions and runs end with their block", async () => {
    let name: string;
    {
      using client = await console.connect();
      await using session = await client.session("bot");
      name = session.sessionId;
      {
        await using run = await session.request("note.write");
        assert.ok(run.execution);
      }
      {
        await using run = await session.request("note.write");
        await run.complete("done");
      }
    }
    const [left, done] = await console.payloads(name, "action_completed");
    assert.equal(left?.["success"], false);
    assert.equal(done?.["success"], true);
    const [ended] = await console.payloads(name, "session_ended");
    assert.equal(ended?.["final_status"], "completed");
  });

  test("a held action waits until an operator passes it, and others go on", async () => {
    const session = await console.session();
    let approvedBy: string | undefined;
    const waiting = session.action("payments.refund", { amount: 5 }, (run) => {
      approvedBy = run.approvedBy;
    });
    const [gate] = await console.held();
    await session.action("note.write", {}, () => undefined);
    assert.equal(approvedBy, undefined);
    await console.pass(gate);
    await waiting;
    assert.equal(approvedBy, "op-1");
  });

  test("a refusal throws with the operator's reason", async () => {
    const session = await console.session();
    const waiting = session.action("payments.refund", {}, mustNotRun);
    const refused = assert.rejects(waiting, (error) => {
      assert.ok(error instanceof Denied);
      assert.match(error.message, /not without a ticket/);
      assert.equal(error.code, "refused");
      assert.match(error.gate ?? "", /^c-\d+$/);
      return true;
    });
    await console.deny("not without a ticket");
    await refused;
  });

  test("policies and silence deny", async () => {
    const session = await console.session();
    await assert.rejects(session.action("secret.read", {}, mustNotRun), /secrets stay where they are/);
    const expired = session.action("payments.refund", {}, mustNotRun, { timeoutMs: 400 });
    await assert.rejects(expired, (error) => error instanceof Denied && error.code === "expired");
  });

  test("a silent console counts as a denial", async () => {
    await withConsole(async (own) => {
      const client = await own.connect({ callTimeoutMs: 400, graceMs: 200 });
      const session = await client.session("bot");
      await own.command({ do: "pause" });
      try {
        const silent = session.action("note.write", {}, mustNotRun, { timeoutMs: 200 });
        await assert.rejects(silent, (error) => error instanceof ConsoleUnavailable && /in time/.test(error.message));
        await assert.rejects(client.status(), /in time/);
      } finally {
        await own.command({ do: "resume" });
      }
    });
  });

  test("identical calls are two runs", async () => {
    const session = await console.session();
    const both = [1, 2].map(() => session.request("payments.refund", { amount: 7 }));
    const outcomes = Promise.allSettled(both);
    const [first, second] = await console.held(2);
    await console.pass(first);
    await console.deny("once is enough", second);
    assert.deepEqual((await outcomes).map((outcome) => outcome.status).sort(), ["fulfilled", "rejected"]);
  });

  test("a caller that gives up leaves the gate", async () => {
    const session = await console.session();
    const leaving = new AbortController();
    const waiting = session.action("payments.refund", { case: "left" }, mustNotRun, { signal: leaving.signal });
    const left = assert.rejects(waiting, { name: "AbortError" });
    const [gate] = await console.held();
    leaving.abort();
    await left;
    await console.deny("nothing waits for it", gate);
    await session.action("note.write", {}, () => undefined);
    await assert.rejects(session.request("note.write", {}, { signal: AbortSignal.abort() }), { name: "AbortError" });
  });

  test("parallel sessions get their own answers", async () => {
    const client = await console.connect();
    const work = async (number: number): Promise<string> => {
      await using session = await client.session(`bot-${number}`);
      const steps = [0, 1, 2, 3, 4].map((step) =>
        session.action("note.write", { number, step }, (run) => `${run.params["number"]}/${run.params["step"]}`),
      );
      assert.deepEqual(await Promise.all(steps), [0, 1, 2, 3, 4].map((step) => `${number}/${step}`));
      return session.sessionId;
    };
    const names = await Promise.all(Array.from({ length: 12 }, (_, number) => work(number)));
    assert.equal(new Set(names).size, 12);
    for (const [number, name] of names.entries()) {
      const done = await console.payloads(name, "action_completed");
      const results = done.map((payload) => payload["result_summary"]).sort();
      assert.deepEqual(results, [0, 1, 2, 3, 4].map((step) => `${number}/${step}`));
    }
  });

  test("a long result is cut and a large request is fine", async () => {
    const session = await console.session();
    await session.action("note.write", { text: "x".repeat(1_000_000) }, () => "\u2603".repeat(100_000));
    const [done] = await console.payloads(session.sessionId, "action_completed");
    assert.match(String(done?.["result_summary"]), /^\u2603+ ... \(cut by the client\)$/);
    await assert.rejects(session.request("note.write", { text: "x".repeat(2 ** 24) }), /at most/);
  });
});

describe("values", () => {
  const recorded = async (params: object): Promise<unknown> => {
    const session = await console.session();
    await session.action("note.write", params, () => undefined);
    const [attempt] = await console.payloads(session.sessionId, "action_attempted");
    return attempt?.["action_params"];
  };

  test("numbers arrive exactly", async () => {
    const session = await console.session();
    const exact = {
      large: 9007199254740993n,
      largest: 18446744073709551615n,
      least: -9223372036854775808n,
      fraction: 0.1,
      tiny: 5e-324,
      zero: -0,
    };
    await session.action("note.write", exact, () => undefined);
    // The helper reads the record in Python, which knows long integers and tells -0.0 from 0.
    const found = JSON.stringify(await console.command({ do: "texts", session: session.sessionId }));
    for (const number of [
      "9007199254740993",
      "18446744073709551615",
      "-9223372036854775808",
      "0.1",
      "5e-324",
        "-0.0",
    ]) {
      assert.ok(found.includes(`"${number}"`), `${number} in ${found}`);
    }
  });

  test("text of every script arrives", async () => {
    const texts = {
      emoji: "\u{1F4A9}\u200d\u{1F525}",
      arabic: "\u0645\u0631\u062d\u0628\u0627",
      controls: "a\u0000b\u001bc\u007f\u2028\u2029\u202e",
      lines: 'a\nb\r\nc\td"\\',
      "\u00fc\u0301key": "",
    };
    assert.deepEqual(await recorded(texts), texts);
    const polluted = JSON.parse('{"__proto__": {"a": 1}}') as object;
    assert.equal(JSON.stringify(await recorded(polluted)), '{"__proto__":{"a":1}}');
  });

  test("values that JSON cannot carry are refused", async () => {
    const session = await console.session();
    const loop: unknown[] = [];
    loop.push(loop);
    const sparse: unknown[] = [];
    sparse[1] = 1;
    for (const [value, words] of [
      [NaN, /`v` is NaN/],
      [Infinity, /`v` is Infinity/],
      [2 ** 53, /above 2\^53/],
      [1e300, /above 2\^53/],
      [2n ** 64n, /more than 64 bits/],
      [() => 1, /type function/],
      [Symbol("x"), /type symbol/],
      [new Date(), /is a Date/],
      [new Map(), /is a Map/],
      [sparse, /`v\[0\]` is of type undefined/],
      [loop, /nested deeper/],
      ["\ud800", /half of a character/],
      [{ "\ud800": 1 }, /half of a character/],
    ] as const) {
      await assert.rejects(session.request("note.write", { v: value }), (error) => {
        assert.ok(error instanceof InvalidRequest);
        assert.match(error.message, words);
        return true;
      });
    }
    await assert.rejects(session.request("note.write", [1]), InvalidRequest);
    await session.action("note.write", { missing: undefined }, (run) => assert.deepEqual(run.params, {}));
  });
});

describe("questions and gates", () => {
  test("questions to the agent throw and answers release the request", async () => {
    const session = await console.session();
    let asked: QuestionsAsked | undefined;
    await assert.rejects(session.request("deploy.run", { to: "staging" }), (error) => {
      asked = error instanceof QuestionsAsked ? error : undefined;
      return asked !== undefined;
    });
    assert.equal(asked?.questions.get("why")?.[0]?.question, "Why now?");
    const gate = asked.gate ?? "";
    await assert.rejects(session.answerCheckpoint(gate, { why: { reason: "no" } }), (error) => {
      return error instanceof AnswersRejected && error.problems[0]?.question === "reason";
    });
    const answered = await session.answerCheckpoint(gate, { why: { reason: "the fix is ready" } });
    assert.ok(answered.permitUntil);
    await session.action("deploy.run", { to: "staging" }, (run) => assert.ok(run.execution));
  });

  test("a function answers questions, or denies", async () => {
    const problems: number[] = [];
    const session = await console.session({
      onQuestions: (asked) => {
        problems.push(asked.problems.length);
        return { why: { reason: problems.length === 1 ? "no" : "the fix is ready" } };
      },
    });
    await session.action("deploy.run", {}, () => undefined);
    assert.deepEqual(problems, [0, 1]);
    const silent = await console.session({ onQuestions: () => undefined });
    await assert.rejects(silent.action("deploy.run", {}, mustNotRun), QuestionsAsked);
    // The request stays held for an answer until its session ends.
    await silent.end();
  });

  test("a gated function gets the copy that was allowed", async () => {
    const session = await console.session();
    const refund = session.gate("payments.refund", (input: { amounts: number[] }) => input.amounts.length);
    const input = { amounts: [1] };
    const waiting = refund(input);
    const [gate] = await console.held();
    input.amounts.push(1000);
    await console.pass(gate);
    assert.equal(await waiting, 1);
    const read = session.gate("secret.read", mustNotRun);
    await assert.rejects(read({}), Denied);
  });
});

describe("reports", () => {
  test("contexts and guidance come to the caller", async () => {
    const session = await console.session();
    assert.equal(session.takeGiven().text(), "Refunds need a person.\n\nBe brief.");
    assert.ok(session.takeGiven().isEmpty);
    const { given } = await session.context({ hints: ["handbook", "nope"] });
    assert.match(given.text(), /measure twice/);
    assert.equal(given.notGiven[0]?.contextId, "nope");
    await session.feedback("handbook", true, { reason: "clear", usageOutcome: "applied" });
    assert.equal((await console.payloads(session.sessionId, "context_feedback")).length, 1);
  });

  test("reports are recorded", async () => {
    const session = await console.session();
    assert.equal((await session.input("close the tickets")).modifiedInput, undefined);
    assert.equal((await session.turn({ message_id: "m-1", message: "we keep T-2" })).decision, "should");
    const { error } = await session.error("timeout", "no answer", { recoverable: true });
    await session.recovered(error ?? "", "retry");
    await session.output("done");
    const resolution = await session.resolve([{ action: "note.write" }, { action: "secret.read", params: {} }]);
    assert.deepEqual(resolution.allowed, ["note.write"]);
    assert.equal(resolution.denied[0]?.["action"], "secret.read");
    await session.action("note.write", {}, () => undefined, { resolution: resolution.resolutionId });
    const other = await console.session();
    await session.handOver(other.sessionId);
    for (const type of ["input_received", "error_recovered", "output_produced", "breakpoint_decided"]) {
      assert.equal((await console.payloads(session.sessionId, type)).length, 1, type);
    }
  });

  test("a session is resumed with its key only", async () => {
    const session = await console.session();
    const again = await console.session({ sessionId: session.sessionId, key: session.key });
    await again.action("note.write", {}, () => undefined);
    const stolen = console.session({ sessionId: session.sessionId });
    await assert.rejects(stolen, (error) => error instanceof Denied && error.code === "session");
    await session.end();
    await session.end();
    await assert.rejects(again.request("note.write"), (error) => error instanceof Denied && error.code === "ended");
  });
});

describe("impostors", () => {
  test("another listener and another key are never believed", async () => {
    for (const trick of ["allow", "prove", "garbage"] as const) {
      const impostor = await Impostor.listen(join(console.ready.folder, `${trick}.sock`), trick);
      await assert.rejects(console.connect({ socket: impostor.path }), UnverifiedAnswer);
      impostor.close();
    }
    await withConsole(async (own) => {
      await assert.rejects(console.connect({ key: own.ready.key }), UnverifiedAnswer);
    });
  });

  test("a listener that takes over later is never believed", async () => {
    for (const trick of ["allow", "prove", "change", "replay"] satisfies Trick[]) {
      const path = join(console.ready.folder, `later-${trick}.sock`);
      const relay = await Impostor.listen(path, "relay", console.ready.socket);
      const session = await (await console.connect({ socket: path })).session("bot");
      await session.action("note.write", {}, () => undefined);
      relay.close();
      const real = trick === "change" || trick === "replay" ? console.ready.socket : undefined;
      const impostor = await Impostor.listen(path, "relay", real);
      impostor.trick = trick;
      if (trick === "replay") await session.request("note.write");
      await assert.rejects(session.action("secret.read", {}, mustNotRun), UnverifiedAnswer, trick);
      impostor.close();
    }
  });

  test("no console, no key, a wrong key and a busy console deny", async () => {
    const busy = await Impostor.listen(join(console.ready.folder, "busy.sock"), "busy");
    await assert.rejects(console.connect({ socket: busy.path }), /too many connections/);
    busy.close();
    await assert.rejects(console.connect({ socket: `${console.ready.folder}/none.sock` }), ConsoleUnavailable);
    await assert.rejects(CraConsole.connect({ socket: console.ready.socket }), /no key/);
    const weak = `ed25519:${Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]).toString("base64")}`;
    for (const key of ["x", "ed25519:", "ed25519:AAAA", console.ready.key.slice(0, -2), weak]) {
      await assert.rejects(console.connect({ key }), InvalidRequest, key);
    }
  });

  test("the socket is found as the console chooses it", () => {
    const home = { XDG_RUNTIME_DIR: "/run/user/7", XDG_DATA_HOME: "/d" };
    assert.equal(defaultSocket(home), "/run/user/7/cra/console.sock");
    assert.equal(defaultSocket({ ...home, CRA_DATA_DIR: "/x" }), "/x/run/console.sock");
    assert.equal(defaultSocket({ ...home, CRA_DATA_DIR: "/x", CRA_SOCKET: "/y" }), "/y");
    assert.equal(defaultSocket({ ...home, XDG_RUNTIME_DIR: "" }), "/d/cra/run/console.sock");
  });

  test("the documented vector verifies", async () => {
    const page = readFileSync(join(REPOSITORY, "docs/src/reference/socket-api.md"), "utf8");
    const part = (name: string) => new RegExp(`^${name} +(\\S.*)$`, "m").exec(page)?.[1] ?? "";
    const { AnswerKey } = (await import("../dist/wire.js" as string)) as Wire;
    const key = new AnswerKey(part("key"));
    const request = Buffer.from(part("request"));
    const challenge = Buffer.from(Array.from({ length: 32 }, (_, at) => at));
    const reply = Buffer.from(part("reply"));
    assert.equal(key.verify(challenge, request, reply).toString(), '{"id":7,"jsonrpc":"2.0","result":{}}');
    for (let at = 0; at < reply.length; at += 1) {
      const changed = Buffer.from(reply);
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.throws(() => key.verify(challenge, request, changed), UnverifiedAnswer, `byte ${at}`);
      assert.throws(() => key.verify(challenge, request, reply.subarray(0, at)), UnverifiedAnswer, `cut at ${at}`);
    }
    assert.throws(() => key.verify(Buffer.alloc(32), request, reply), UnverifiedAnswer);
    assert.throws(() => key.verify(challenge, Buffer.from("{}"), reply), UnverifiedAnswer);
  });
});

describe("examples", () => {
  test("the examples of the README and the guide run", async () => {
    const pages = ["clients/typescript/README.md", "docs/src/guide/own-agents.md"];
    for (const page of pages) {
      const text = readFileSync(join(REPOSITORY, page), "utf8");
      const examples = text.split("```ts example\n").slice(1);
      assert.ok(examples.length > 0, page);
      for (const [at, example] of examples.entries()) {
        // In the package's folder, so that its name resolves.
        const file = new URL(`example-${page.replaceAll("/", "-")}-${at}.mjs`, import.meta.url);
        writeFileSync(file, example.split("```")[0] ?? "");
        const environment = { CRA_SOCKET: console.ready.socket, CRA_ANSWER_KEY: console.ready.key };
        const running = promisify(execFile)(process.execPath, [fileURLToPath(file)], {
          env: { ...process.env, ...environment },
        });
        if (example.includes("payments.refund")) await console.pass();
        await running;
      }
    }
  });
});

describe("interruptions", () => {
  test("a console that is gone denies the held request", async () => {
    await withConsole(async (own) => {
      const session = await (await own.connect({ reconnectMs: 300 })).session("bot");
      const gone = assert.rejects(session.action("payments.refund", {}, mustNotRun), ConsoleUnavailable);
      await own.held();
      await own.command({ do: "kill" });
      await gone;
    });
  });

  test("a request joins the held one of a restarted console", async () => {
    await withConsole(async (own) => {
      const session = await own.session();
      const runs: Run[] = [];
      const waiting = session.action("payments.refund", { amount: 5 }, (run) => void runs.push(run));
      const [gate] = await own.held();
      await own.command({ do: "kill" });
      await own.command({ do: "start" });
      await own.command({ do: "joined", times: 1 });
      assert.deepEqual(await own.held(), [gate]);
      await own.pass(gate);
      await waiting;
      assert.equal(runs.length, 1);
      assert.equal((await own.payloads(session.sessionId, "action_completed")).length, 1);
    });
  });

  test("a request joins the held one after a cut connection", async () => {
    const relay = await Impostor.listen(join(console.ready.folder, "relay.sock"), "relay", console.ready.socket);
    const session = await (await console.connect({ socket: relay.path })).session("bot");
    const runs: Run[] = [];
    const waiting = session.action("payments.refund", { amount: 5 }, (run) => void runs.push(run));
    const [gate] = await console.held();
    for (const times of [1, 2]) {
      relay.cut();
      await console.command({ do: "joined", times });
    }
    assert.deepEqual(await console.held(), [gate]);
    await console.pass(gate);
    await waiting;
    assert.equal(runs.length, 1);
    relay.close();
  });

  test("a lost report is not sent twice, and idle connections outlive a restart", async () => {
    await withConsole(async (own) => {
      const relay = await Impostor.listen(join(own.ready.folder, "relay.sock"), "relay", own.ready.socket);
      const session = await (await own.connect({ socket: relay.path })).session("bot");
      relay.trick = "hang";
      const lost = assert.rejects(session.output("hello"), /may have taken `output`/);
      await waitUntil("it is sent", () => relay.methods.includes("output"));
      relay.cut();
      await lost;
      relay.close();
      const direct = await own.session();
      await own.command({ do: "kill" });
      await own.command({ do: "start" });
      await direct.action("note.write", {}, () => undefined);
    });
  });

  test("a result that cannot be reported is no denial", async () => {
    await withConsole(async (own) => {
      const session = await (await own.connect({ reconnectMs: 200 })).session("bot");
      let ran = false;
      const unreported = session.action("note.write", {}, async () => {
        ran = true;
        await own.command({ do: "kill" });
      });
      await assert.rejects(unreported, NotReported);
      assert.ok(ran);
    });
  });
});
