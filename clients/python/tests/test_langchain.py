"""The bridge to LangChain and LangGraph, with a scripted chat model."""

import asyncio
import unittest
from typing import Any, Dict, List

try:
    import langchain  # noqa: F401
    import langgraph  # noqa: F401
except ImportError:
    raise unittest.SkipTest("langchain and langgraph are not installed") from None

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from . import ROOT  # noqa: F401
from .support import Background, ConsoleTest
from .test_async import in_thread, within
from console import TestConsole

from cra_client import AsyncConsole, Console, InvalidRequest
from cra_client.langchain import ainvoke, invoke

ACTIONS = {"refund": "payments.refund", "note": "note.write", "read_secret": "secret.read"}
CONFIG = {"configurable": {"thread_id": "1"}}


class ScriptedChatModel(GenericFakeChatModel):
    """A model that plays messages. It knows its tools already."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def call(name: str, arguments: Dict[str, Any], call_id: str) -> Dict[str, Any]:
    return {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}


class LangChain(ConsoleTest):
    def setUp(self) -> None:
        self.paid: List[int] = []

    def agent(self, *turns: List[Dict[str, Any]], mode: Any = "batched") -> Any:
        @tool
        def refund(amount: int) -> str:
            """Refunds an amount."""
            self.paid.append(amount)
            return f"refunded {amount}"

        @tool
        def read_secret() -> str:
            """Reads a secret."""
            self.paid.append(-1)
            return "hunter2"

        @tool
        def note(text: str) -> str:
            """Writes a note."""
            if text == "broken":
                raise ValueError("the pencil broke")
            return f"noted {text}"

        messages: List[Any] = [AIMessage(content="", tool_calls=calls) for calls in turns]
        model = ScriptedChatModel(messages=iter([*messages, AIMessage(content="bye")]))
        gate = HumanInTheLoopMiddleware(
            interrupt_on={"refund": True, "read_secret": True, "note": True}, interrupt_mode=mode
        )
        return create_agent(
            model, tools=[refund, read_secret, note], middleware=[gate], checkpointer=InMemorySaver()
        )

    @staticmethod
    def heard(result: Any) -> Dict[str, str]:
        messages = [message for message in result["messages"] if isinstance(message, ToolMessage)]
        return {message.tool_call_id: str(message.content) for message in messages}

    def test_a_call_is_held_and_passed(self) -> None:
        for mode in ("batched", "per_call"):
            session = self.session()
            agent = self.agent([call("refund", {"amount": 5}, "call-1")], mode=mode)
            ask = lambda: invoke(
                agent, {"messages": [("user", "refund 5")]}, CONFIG, session=session, actions=ACTIONS
            )
            running = Background(ask)
            with running:
                [gate] = self.console.wait_for_held()
                self.assertEqual(self.paid, [])
                self.console.pass_request(gate)
            self.assertEqual(self.heard(running.result), {"call-1": "refunded 5"})
            self.assertEqual(self.paid, [5])
            self.assertEqual(running.result["messages"][-1].content, "bye")
            [done] = self.console.payloads(session.session_id, "action_completed")
            self.assertEqual(done["result_summary"], "refunded 5")
            self.paid.clear()

    def test_the_model_sees_the_reason_of_a_denial(self) -> None:
        for mode in ("batched", "per_call"):
            session = self.session()
            turn = [
                call("refund", {"amount": 1}, "call-1"),
                call("read_secret", {}, "call-2"),
                call("refund", {"amount": 1}, "call-3"),
                call("note", {"text": "hello"}, "call-4"),
            ]
            running = Background(
                lambda: invoke(
                    self.agent(turn, mode=mode),
                    {"messages": [("user", "go")]},
                    CONFIG,
                    session=session,
                    actions=ACTIONS,
                )
            )
            with running:
                first, second = self.console.wait_for_held(2)
                self.console.pass_request(first)
                self.console.deny_request("once is enough", second)
            heard = self.heard(running.result)
            self.assertEqual(self.paid, [1])
            self.assertIn("secrets stay where they are", heard["call-2"])
            self.assertEqual(heard["call-4"], "noted hello")
            refunds = sorted([heard["call-1"], heard["call-3"]])
            self.assertIn("once is enough", refunds[0])
            self.assertEqual(refunds[1], "refunded 1")
            self.paid.clear()

    def test_a_tool_that_fails_is_reported(self) -> None:
        session = self.session()
        agent = self.agent([call("note", {"text": "broken"}, "call-1")])
        with self.assertRaisesRegex(ValueError, "pencil"):
            invoke(agent, {"messages": [("user", "go")]}, CONFIG, session=session, actions=ACTIONS)
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertFalse(done["success"])

    def test_a_console_that_is_gone_denies(self) -> None:
        with TestConsole() as own:
            client = Console.connect(own.socket, key=own.key, reconnect=0.2)
            session = client.session("bot")
            session.start()
            agent = self.agent([call("refund", {"amount": 5}, "call-1")])
            running = Background(
                lambda: invoke(agent, {"messages": [("user", "go")]}, CONFIG, session=session, actions=ACTIONS)
            )
            with running:
                own.wait_for_held()
                own.kill()
            self.assertEqual(self.paid, [])
            self.assertRegex(self.heard(running.result)["call-1"], "cra: (no console listens|the console closed)")
            client.close()

    def test_the_asynchronous_form(self) -> None:
        async def go() -> None:
            client = await AsyncConsole.connect(self.console.socket, key=self.console.key)
            async with client.session("bot") as session:
                turn = [call("refund", {"amount": 2}, "call-1"), call("read_secret", {}, "call-2")]
                agent = self.agent(turn)
                running = asyncio.ensure_future(
                    ainvoke(agent, {"messages": [("user", "go")]}, CONFIG, session=session, actions=ACTIONS)
                )
                await in_thread(self.console.pass_request)
                heard = self.heard(await within(running))
                self.assertEqual(heard["call-1"], "refunded 2")
                self.assertIn("secrets stay where they are", heard["call-2"])
            client.close()

        asyncio.run(go())
        self.assertEqual(self.paid, [2])

    def test_another_interrupt_is_an_error(self) -> None:
        class Other:
            def invoke(self, input: Any, config: Any = None) -> Any:
                return {"__interrupt__": [type("Interrupt", (), {"id": "1", "value": "why?"})()]}

        with self.assertRaises(InvalidRequest):
            invoke(Other(), {}, session=self.session())


if __name__ == "__main__":
    unittest.main()
