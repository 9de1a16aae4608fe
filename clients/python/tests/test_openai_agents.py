"""The bridge to the OpenAI Agents SDK, with its own scripted model."""

import asyncio
import json
import unittest
from typing import Any, List

try:
    import agents
except ImportError:
    raise unittest.SkipTest("openai-agents is not installed") from None

from agents import Agent, FunctionTool, function_tool
from agents.testing import ScriptedModel, function_call, assistant_message

from . import ROOT  # noqa: F401
from .test_async import in_thread, within
from console import TestConsole

from cra_client import AsyncConsole, AsyncSession
from cra_client.openai_agents import require_approval, run

agents.set_tracing_disabled(True)

ACTIONS = {"refund": "payments.refund", "note": "note.write", "read_secret": "secret.read"}


class OpenAIAgents(unittest.IsolatedAsyncioTestCase):
    console: TestConsole

    @classmethod
    def setUpClass(cls) -> None:
        cls.console = TestConsole()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.console.close()

    async def asyncSetUp(self) -> None:
        self.client = await AsyncConsole.connect(self.console.socket, key=self.console.key)
        self.addCleanup(self.client.close)
        self.paid: List[int] = []
        self.tools = [self.refund_tool(), self.note_tool(), self.secret_tool()]

    async def session(self) -> AsyncSession:
        session = self.client.session("shop-bot")
        await session.start()
        return session

    def refund_tool(self) -> FunctionTool:
        @function_tool(needs_approval=True)
        def refund(amount: int) -> str:
            self.paid.append(amount)
            return f"refunded {amount}"

        return refund

    def note_tool(self) -> FunctionTool:
        @function_tool
        def note(text: str) -> str:
            if text == "broken":
                raise ValueError("the pencil broke")
            return f"noted {text}"

        [tool] = require_approval([note])
        return tool

    def secret_tool(self) -> FunctionTool:
        @function_tool(needs_approval=True)
        def read_secret() -> str:
            self.paid.append(-1)
            return "hunter2"

        return read_secret

    def script(self, *steps: Any) -> "tuple[Agent[Any], ScriptedModel]":
        model = ScriptedModel([*steps, [assistant_message("bye")]])
        return Agent(name="shop-bot", model=model, tools=list(self.tools)), model

    @staticmethod
    def heard(model: ScriptedModel) -> str:
        call = model.last_call
        assert call is not None
        return json.dumps(call.input, default=str)

    async def test_a_call_is_held_and_passed(self) -> None:
        session = await self.session()
        agent, model = self.script([function_call("refund", {"amount": 5}, call_id="call-1")])
        running = asyncio.ensure_future(run(agent, "refund 5", session=session, actions=ACTIONS))
        [gate] = await in_thread(self.console.wait_for_held)
        self.assertEqual(self.paid, [])
        await in_thread(self.console.pass_request, gate)
        result = await within(running)
        self.assertEqual((result.final_output, self.paid), ("bye", [5]))
        self.assertIn("refunded 5", self.heard(model))
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertEqual((done["action_type"], done["result_summary"]), ("payments.refund", "refunded 5"))

    async def test_the_model_sees_the_reason_of_a_denial(self) -> None:
        session = await self.session()
        agent, model = self.script([function_call("refund", {"amount": 9}, call_id="call-1")])
        running = asyncio.ensure_future(run(agent, "refund 9", session=session, actions=ACTIONS))
        await in_thread(self.console.deny_request, "too much for one day")
        await within(running)
        self.assertEqual(self.paid, [])
        self.assertIn("too much for one day", self.heard(model))
        agent, model = self.script([function_call("read_secret", {}, call_id="call-1")])
        await within(run(agent, "read", session=session, actions=ACTIONS))
        self.assertIn("secrets stay where they are", self.heard(model))
        self.assertEqual(self.paid, [])

    async def test_calls_of_one_turn_are_decided_one_by_one(self) -> None:
        session = await self.session()
        calls = [
            function_call("refund", {"amount": 1}, call_id="call-1"),
            function_call("refund", {"amount": 1}, call_id="call-2"),
            function_call("note", {"text": "hello"}, call_id="call-3"),
        ]
        agent, model = self.script(calls)
        running = asyncio.ensure_future(run(agent, "refund twice", session=session, actions=ACTIONS))
        first, second = await in_thread(self.console.wait_for_held, 2)
        await in_thread(self.console.pass_request, first)
        await in_thread(self.console.deny_request, "once is enough", second)
        await within(running)
        self.assertEqual(self.paid, [1])
        for text in ("refunded 1", "once is enough", "noted hello"):
            self.assertIn(text, self.heard(model))

    async def test_a_second_call_under_the_same_identifier_asks_again(self) -> None:
        session = await self.session()
        call = [function_call("refund", {"amount": 2}, call_id="call-1")]
        agent, model = self.script(call, [function_call("refund", {"amount": 2}, call_id="call-1")])
        running = asyncio.ensure_future(run(agent, "refund", session=session, actions=ACTIONS))
        await in_thread(self.console.pass_request)
        # Either the SDK refuses the call, or the console is asked again; it never runs a second time unasked.
        gates: List[str] = []
        while not running.done() and not gates:
            gates = [str(held["id"]) for held in await in_thread(self.console.held)]
        for gate in gates:
            await in_thread(self.console.deny_request, "not again", gate)
        await within(asyncio.wait([running]))
        running.exception()
        self.assertEqual(self.paid, [2])

    async def test_a_tool_that_fails_is_reported_as_the_sdk_tells_it(self) -> None:
        session = await self.session()
        agent, model = self.script([function_call("note", {"text": "broken"}, call_id="call-1")])
        await within(run(agent, "note", session=session, actions=ACTIONS))
        # The SDK turns the error into this text, for the model and for hooks.
        words = "An error occurred while running the tool"
        self.assertIn(words, self.heard(model))
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertIn(words, done["result_summary"])

    async def test_a_console_that_is_gone_denies(self) -> None:
        with TestConsole() as own:
            client = await AsyncConsole.connect(own.socket, key=own.key, reconnect=0.2)
            session = client.session("shop-bot")
            await session.start()
            agent, model = self.script([function_call("refund", {"amount": 5}, call_id="call-1")])
            running = asyncio.ensure_future(run(agent, "refund", session=session, actions=ACTIONS))
            await in_thread(own.wait_for_held)
            own.kill()
            await within(running)
            self.assertEqual(self.paid, [])
            self.assertRegex(self.heard(model), "cra: (no console listens|the console closed)")
            client.close()

    async def test_a_call_that_was_approved_elsewhere_does_not_run(self) -> None:
        session = await self.session()
        agent, model = self.script([function_call("refund", {"amount": 5}, call_id="call-1")])
        stopped = await agents.Runner.run(agent, "refund")
        state = stopped.to_state()
        state.approve(stopped.interruptions[0])
        with self.assertRaisesRegex(Exception, "has not allowed this call"):
            await within(run(agent, state, session=session, actions=ACTIONS))
        self.assertEqual(self.paid, [])




if __name__ == "__main__":
    unittest.main()
