"""The asyncio client, against the real console."""

import asyncio
import unittest
from typing import Any, Awaitable, Callable, Dict, List, Optional, TypeVar
from unittest import mock

from . import ROOT  # noqa: F401
from console import DEADLINE_S, TestConsole
from impostor import Impostor

import cra_client._calls as calls
from cra_client import (
    AsyncConsole,
    AsyncSession,
    ConsoleUnavailable,
    Denied,
    InvalidRequest,
    NotReported,
    QuestionsAsked,
    UnverifiedAnswer,
)

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Runs what blocks in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: function(*arguments))


async def within(awaitable: Awaitable[T]) -> T:
    """Waits with a deadline."""
    return await asyncio.wait_for(awaitable, DEADLINE_S)


class AsyncClient(unittest.IsolatedAsyncioTestCase):
    console: TestConsole

    @classmethod
    def setUpClass(cls) -> None:
        cls.console = TestConsole()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.console.close()

    async def connect(self, **options: Any) -> AsyncConsole:
        options.setdefault("key", self.console.key)
        options.setdefault("socket", self.console.socket)
        client = await AsyncConsole.connect(**options)
        self.addCleanup(client.close)
        return client

    async def session(self, **options: Any) -> AsyncSession:
        session = (await self.connect()).session("bot", **options)
        await session.start()
        return session

    async def test_an_allowed_action_runs_and_is_recorded(self) -> None:
        async with await self.connect() as client:
            async with client.session("bot", intent="notes") as session:
                self.assertEqual(session.take_given().text(), "Refunds need a person.\n\nBe brief.")
                async with session.action("note.write", {"text": "\N{SNOWMAN}"}) as run:
                    run.result({"words": 1})
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertEqual(done["result_summary"], '{"words": 1}')

    async def test_a_held_action_waits_and_others_go_on(self) -> None:
        session = await self.session()

        async def refund() -> Optional[str]:
            async with session.action("payments.refund", {"amount": 5}) as run:
                return run.approved_by

        waiting = asyncio.ensure_future(refund())
        [gate] = await in_thread(self.console.wait_for_held)
        await (await session.request("note.write")).complete()
        self.assertFalse(waiting.done())
        await in_thread(self.console.pass_request, gate)
        self.assertEqual(await within(waiting), "op-1")

    async def test_denials_raise(self) -> None:
        session = await self.session()
        with self.assertRaisesRegex(Denied, "secrets stay where they are"):
            async with session.action("secret.read"):
                self.fail("it ran")
        waiting = asyncio.ensure_future(session.request("payments.refund"))
        await in_thread(self.console.deny_request, "not today")
        with self.assertRaisesRegex(Denied, "not today"):
            await within(waiting)
        with self.assertRaises(Denied) as raised:
            await session.request("payments.refund", timeout=0.3)
        self.assertEqual(raised.exception.code, "expired")
        with self.assertRaises(InvalidRequest):
            await session.request("note.write", {"x": float("nan")})

    async def test_a_silent_console_denies(self) -> None:
        with TestConsole() as console, mock.patch.object(calls, "GRACE_S", 0.2):
            client = await self.connect(socket=console.socket, key=console.key, call_timeout=0.5)
            session = client.session("bot")
            await session.start()
            console.pause()
            try:
                with self.assertRaisesRegex(ConsoleUnavailable, "in time"):
                    await session.request("note.write", timeout=0.2)
            finally:
                console.resume()

    async def test_a_cancelled_task_leaves_the_gate(self) -> None:
        session = await self.session()
        waiting = asyncio.ensure_future(session.request("payments.refund", {"case": "cancelled"}))
        [gate] = await in_thread(self.console.wait_for_held)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        await in_thread(self.console.deny_request, "nothing waits for it", gate)
        await (await session.request("note.write")).complete()

    async def test_many_actions_at_once(self) -> None:
        session = await self.session()

        async def write(number: int) -> int:
            async with session.action("note.write", {"number": number}) as run:
                return int(run.params["number"])

        found = await asyncio.gather(*(write(number) for number in range(40)))
        self.assertEqual(found, list(range(40)))
        self.assertEqual(len(self.console.payloads(session.session_id, "action_completed")), 40)

    async def test_identical_calls_are_two_runs(self) -> None:
        session = await self.session()
        both = [asyncio.ensure_future(session.request("payments.refund", {"amount": 7})) for _ in range(2)]
        first, second = await in_thread(self.console.wait_for_held, 2)
        await in_thread(self.console.pass_request, first)
        await in_thread(self.console.deny_request, "once is enough", second)
        outcomes = await within(asyncio.gather(*both, return_exceptions=True))
        self.assertEqual(sorted(isinstance(outcome, Denied) for outcome in outcomes), [False, True])

    async def test_questions_are_answered_by_a_coroutine(self) -> None:
        async def answer(asked: QuestionsAsked) -> Dict[str, Dict[str, str]]:
            await asyncio.sleep(0)
            return {"why": {"reason": "the fix is ready"}}

        session = await self.session(on_questions=answer)
        self.assertTrue((await session.request("deploy.run")).execution)
        session = await self.session(on_questions=lambda asked: None)
        with self.assertRaises(QuestionsAsked):
            await session.request("deploy.run", timeout=1)

    async def test_gated_functions(self) -> None:
        session = await self.session()
        ran: List[List[int]] = []

        @session.gate("payments.refund")
        async def refund(amounts: List[int]) -> int:
            ran.append(list(amounts))
            return sum(amounts)

        waiting = asyncio.ensure_future(refund([1, 2]))
        await in_thread(self.console.pass_request)
        self.assertEqual(await within(waiting), 3)
        amounts = [1]
        waiting = asyncio.ensure_future(refund(amounts))
        [gate] = await in_thread(self.console.wait_for_held)
        amounts.append(1000)
        await in_thread(self.console.pass_request, gate)
        with self.assertRaisesRegex(Denied, "changed while"):
            await within(waiting)
        self.assertEqual(ran, [[1, 2]])

    async def test_reports(self) -> None:
        session = await self.session()
        await session.input("hello")
        self.assertIn("measure twice", (await session.context("handbook")).given.text())
        await session.feedback("handbook", False)
        self.assertEqual((await session.turn("hello", message_id="m-1")).decision, "should")
        error = (await session.error("timeout", "no answer")).error
        assert error is not None
        await session.recovered(error, "retry")
        await session.output("bye")
        self.assertEqual((await session.resolve([{"action": "note.write"}])).allowed, ("note.write",))
        other = await self.session()
        await session.hand_over(other.session_id)
        await session.end("cancelled", "enough")

    async def test_impostors_are_never_believed(self) -> None:
        for trick in ("allow", "prove", "garbage"):
            impostor = Impostor(self.console.folder / f"async-{trick}.sock", trick)
            self.addCleanup(impostor.close)
            with self.assertRaises(UnverifiedAnswer):
                await self.connect(socket=impostor.path)
        with self.assertRaisesRegex(ConsoleUnavailable, "no console listens"):
            await self.connect(socket=self.console.folder / "none.sock")

    async def test_a_request_joins_the_held_one_of_a_restarted_console(self) -> None:
        with TestConsole() as own:
            client = await self.connect(socket=own.socket, key=own.key)
            session = client.session("bot")
            await session.start()
            waiting = asyncio.ensure_future(session.request("payments.refund"))
            [gate] = await in_thread(own.wait_for_held)
            own.kill()
            await in_thread(own.start)
            await in_thread(own.wait_for_joined, 1)
            self.assertEqual(await in_thread(own.wait_for_held), [gate])
            await in_thread(own.pass_request, gate)
            run = await within(waiting)
            self.assertEqual(run.approved_by, "op-1")
            client._settings = client._settings.for_first_call()
            client._transport._settings = client._settings
            own.kill()
            with self.assertRaises(NotReported):
                await run.complete()
            with self.assertRaises(ConsoleUnavailable):
                await session.request("note.write")


if __name__ == "__main__":
    unittest.main()
