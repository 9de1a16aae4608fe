"""The blocking client, against the real console."""

import json
import math
import os
import random
import struct
import unittest
from typing import Any, Dict, List, Mapping, Optional
from unittest import mock

from . import ROOT
from .support import Background, ConsoleTest, wait_until
from console import TestConsole
from impostor import Impostor

import cra_client._calls as calls
from cra_client import (
    AnswersRejected,
    Console,
    ConsoleUnavailable,
    CraError,
    Denied,
    InvalidRequest,
    NotReported,
    QuestionsAsked,
    UnverifiedAnswer,
    default_socket,
)


class Actions(ConsoleTest):
    def test_an_allowed_action_runs_and_its_result_is_recorded(self) -> None:
        session = self.session(intent="take notes")
        with session.action("note.write", {"text": "hello"}) as run:
            self.assertEqual(run.params, {"text": "hello"})
            self.assertIsNone(run.approved_by)
            run.result("12 words")
        session.end()
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertEqual((done["success"], done["result_summary"]), (True, "12 words"))
        [started] = self.console.payloads(session.session_id, "session_started")
        self.assertIn("take notes", json.dumps(started))
        self.assertEqual(len(self.console.payloads(session.session_id, "session_ended")), 1)

    def test_a_failure_in_the_block_is_recorded_and_raised(self) -> None:
        session = self.session()
        with self.assertRaisesRegex(KeyError, "no such row"):
            with session.action("note.write"):
                raise KeyError("no such row")
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertFalse(done["success"])
        self.assertEqual(done["error"], {"code": "KeyError", "message": "'no such row'"})

    def test_a_session_ends_with_its_block_and_says_how(self) -> None:
        client = self.connect()
        with client.session("bot") as good:
            pass
        with self.assertRaises(ZeroDivisionError):
            with client.session("bot") as bad:
                raise ZeroDivisionError
        for session, status in [(good, "completed"), (bad, "error")]:
            [ended] = self.console.payloads(session.session_id, "session_ended")
            self.assertEqual(ended["final_status"], status)

    def test_a_held_action_waits_until_an_operator_passes_it(self) -> None:
        session = self.session()
        ran: List[Optional[str]] = []

        def refund() -> None:
            with session.action("payments.refund", {"amount": 5}) as run:
                ran.append(run.approved_by)

        with Background(refund):
            [gate] = self.console.wait_for_held()
            self.assertEqual(ran, [])
            self.console.pass_request(gate)
        self.assertEqual(ran, ["op-1"])

    def test_a_refusal_raises_with_the_operators_reason(self) -> None:
        session = self.session()

        def refund() -> None:
            with session.action("payments.refund", {"amount": 5}):
                self.fail("it ran")

        refused = Background(refund)
        with self.assertRaisesRegex(Denied, "not without a ticket") as raised:
            with refused:
                self.console.deny_request("not without a ticket")
        self.assertEqual(raised.exception.code, "refused")
        self.assertRegex(raised.exception.gate or "", r"^c-\d+$")
        self.assertEqual(self.console.payloads(session.session_id, "action_completed"), [])

    def test_a_policy_denies_at_once(self) -> None:
        session = self.session()
        with self.assertRaisesRegex(Denied, "secrets stay where they are") as raised:
            session.request("secret.read")
        self.assertEqual(raised.exception.code, "policy")
        with self.assertRaises(Denied) as raised:
            session.request("no.such.action")
        self.assertEqual(raised.exception.code, "unknown_action")
        self.assertIn(raised.exception.help or "?", raised.exception.explanation)

    def test_silence_denies_when_the_time_is_up(self) -> None:
        session = self.session()
        with self.assertRaises(Denied) as raised:
            with session.action("payments.refund", timeout=0.5):
                self.fail("it ran")
        self.assertEqual(raised.exception.code, "expired")
        self.console.wait_for_held(0)

    def test_a_silent_console_counts_as_a_denial(self) -> None:
        with TestConsole() as console, mock.patch.object(calls, "GRACE_S", 0.2):
            client = self.connect(socket=console.socket, key=console.key, call_timeout=0.5)
            session = client.session("bot")
            session.start()
            console.pause()
            try:
                with self.assertRaisesRegex(ConsoleUnavailable, "in time"):
                    with session.action("note.write", timeout=0.2):
                        self.fail("it ran")
                with self.assertRaisesRegex(ConsoleUnavailable, "in time"):
                    client.status()
            finally:
                console.resume()

    def test_identical_calls_are_two_runs(self) -> None:
        session = self.session()
        outcomes: List[str] = []

        def refund() -> None:
            try:
                with session.action("payments.refund", {"amount": 7}) as run:
                    outcomes.append(run.execution)
            except Denied:
                outcomes.append("denied")

        with Background(refund), Background(refund):
            first, second = self.console.wait_for_held(2)
            self.console.pass_request(first)
            self.console.deny_request("once is enough", second)
        self.assertEqual(sorted(outcome == "denied" for outcome in outcomes), [False, True])

    def test_one_permission_is_one_block(self) -> None:
        session = self.session()
        action = session.action("note.write")
        with action:
            pass
        with self.assertRaises(InvalidRequest):
            with action:
                self.fail("it ran")

    def test_held_actions_of_one_session_wait_side_by_side(self) -> None:
        session = self.session()
        allowed: List[int] = []

        def refund(number: int) -> None:
            with session.action("payments.refund", {"amount": number}) as run:
                allowed.append(run.params["amount"])

        with Background(lambda: refund(1)), Background(lambda: refund(2)), Background(lambda: refund(3)):
            for gate in self.console.wait_for_held(3):
                # Another call is answered while these wait.
                session.request("note.write").complete()
                self.console.pass_request(gate)
        self.assertEqual(sorted(allowed), [1, 2, 3])

    def test_parallel_sessions_get_their_own_answers(self) -> None:
        client = self.connect()
        found: Dict[int, str] = {}

        def work(number: int) -> None:
            with client.session(f"bot-{number}") as session:
                for step in range(5):
                    with session.action("note.write", {"number": number, "step": step}) as run:
                        run.result(f"{number}/{step}")
                found[number] = session.session_id

        workers = [Background(lambda number=number: work(number)) for number in range(12)]  # type: ignore[misc]
        for worker in workers:
            worker.__enter__()
        for worker in workers:
            worker.join()
        self.assertEqual(len(set(found.values())), 12)
        for number, name in found.items():
            done = self.console.payloads(name, "action_completed")
            results = sorted(payload["result_summary"] for payload in done)
            self.assertEqual(results, [f"{number}/{step}" for step in range(5)])

    def test_a_long_result_is_cut_and_a_large_request_is_fine(self) -> None:
        session = self.session()
        with session.action("note.write", {"text": "x" * 1_000_000}) as run:
            run.result("\N{SNOWMAN}" * 100_000)
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertTrue(done["result_summary"].endswith("(cut by the client)"))
        with self.assertRaisesRegex(InvalidRequest, "at most"):
            session.request("note.write", {"text": "x" * (16 * 1024 * 1024)})


class Values(ConsoleTest):
    def recorded(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        session = self.session()
        session.request("note.write", params).complete()
        [attempt] = self.console.payloads(session.session_id, "action_attempted")
        return dict(attempt["action_params"])

    def test_numbers_arrive_exactly(self) -> None:
        for number in [2**53 + 1, 2**63, 2**64 - 1, -(2**63), 0, 0.1, -0.0, 1e22, 5e-324, 1.7976931348623157e308]:
            [found] = self.recorded({"n": number}).values()
            self.assertEqual((type(found), repr(found)), (type(number), repr(number)))
        chosen = random.Random(7)
        floats = [struct.unpack("d", chosen.getrandbits(64).to_bytes(8, "little"))[0] for _ in range(200)]
        floats = [number for number in floats if math.isfinite(number)]
        self.assertEqual(self.recorded({"list": floats}), {"list": floats})

    def test_one_and_one_point_zero_are_different_requests(self) -> None:
        found = self.recorded({"a": 1, "b": 1.0, "c": "1", "d": True})
        self.assertEqual([repr(value) for value in found.values()], ["1", "1.0", "'1'", "True"])

    def test_values_that_json_cannot_carry_are_refused(self) -> None:
        session = self.session()
        loop: List[Any] = []
        loop.append(loop)
        for value, words in [
            (float("nan"), "`v` is nan"),
            (float("inf"), "`v` is inf"),
            ({1: "a", "1": "b"}, "the key 1 at `v` is not text"),
            ([object()], r"`v\[0\]` is of type object"),
            (b"bytes", "is of type bytes"),
            (loop, "nested deeper"),
            (2**64, "`v` is an integer of more than 64 bits"),
            (-(2**63) - 1, "more than 64 bits"),
            ("\ud800", "cannot be written as JSON"),
        ]:
            with self.assertRaisesRegex(InvalidRequest, words):
                session.request("note.write", {"v": value})
        # The connection works on.
        session.request("note.write").complete()

    def test_text_of_every_script_arrives(self) -> None:
        texts = {
            "emoji": "\N{PILE OF POO}\u200d\N{FIRE}",
            "arabic": "\u0645\u0631\u062d\u0628\u0627",
            "controls": "a\u0000b\u001bc\u007f\u2028\u2029\u202e",
            "lines": "a\nb\r\nc\td\"\\",
            "\u00fc\u0301key": "",
        }
        self.assertEqual(self.recorded(texts), texts)

    def test_parameters_are_copied_when_they_are_sent(self) -> None:
        session = self.session()
        params = {"list": [1]}
        with session.action("note.write", params) as run:
            params["list"].append(2)
            self.assertEqual(run.params, {"list": [1]})


class Questions(ConsoleTest):
    def test_questions_to_the_agent_raise_and_answers_release_the_request(self) -> None:
        session = self.session()
        with self.assertRaises(QuestionsAsked) as raised:
            session.request("deploy.run", {"to": "staging"})
        asked = raised.exception
        [question] = asked.questions["why"]
        self.assertEqual((question.question_id, question.text), ("reason", "Why now?"))
        assert asked.gate is not None
        with self.assertRaises(AnswersRejected) as rejected:
            session.answer_checkpoint(asked.gate, {"why": {"reason": "short"}})
        self.assertEqual(rejected.exception.problems[0]["question"], "reason")
        answered = session.answer_checkpoint(asked.gate, {"why": {"reason": "the fix is ready"}})
        self.assertIsNotNone(answered.permit_until)
        with session.action("deploy.run", {"to": "staging"}) as run:
            self.assertTrue(run.execution)

    def test_a_function_answers_questions(self) -> None:
        seen: List[QuestionsAsked] = []

        def answer(asked: QuestionsAsked) -> Dict[str, Dict[str, str]]:
            seen.append(asked)
            return {"why": {"reason": "no" if len(seen) == 1 else "the fix is ready"}}

        session = self.session(on_questions=answer)
        with session.action("deploy.run") as run:
            self.assertTrue(run.execution)
        self.assertEqual([len(asked.problems) for asked in seen], [0, 1])

    def test_a_function_without_an_answer_denies(self) -> None:
        session = self.session(on_questions=lambda asked: None)
        with self.assertRaises(QuestionsAsked):
            session.request("deploy.run", {"case": "none"}, timeout=1)
        session = self.session(on_questions=lambda asked: {"why": {"reason": "no"}})
        with self.assertRaises(QuestionsAsked) as raised:
            session.request("deploy.run", {"case": "wrong"}, timeout=1)
        self.assertEqual(len(raised.exception.problems), 1)


class Gates(ConsoleTest):
    def test_arguments_become_parameters(self) -> None:
        session = self.session()

        class Desk:
            @session.gate("note.write")
            def write(self, text: str, *more: int, level: int = 3, **rest: str) -> str:
                return f"{text}{more}{level}{rest}"

        self.assertEqual(Desk().write("a", 1, 2, who="b"), "a(1, 2)3{'who': 'b'}")
        [attempt] = self.console.payloads(session.session_id, "action_attempted")
        self.assertEqual(attempt["action_params"], {"text": "a", "more": [1, 2], "level": 3, "who": "b"})
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertEqual(done["result_summary"], "a(1, 2)3{'who': 'b'}")

    def test_a_denied_function_does_not_run(self) -> None:
        session = self.session()
        calls: List[str] = []

        @session.gate("secret.read")
        def read(name: str) -> None:
            calls.append(name)

        with self.assertRaises(Denied):
            read("password")
        with self.assertRaises(InvalidRequest):
            read(object())  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            read()  # type: ignore[call-arg]
        self.assertEqual(calls, [])

    def test_arguments_that_change_while_they_are_held_are_denied(self) -> None:
        session = self.session()
        paid: List[List[int]] = []

        @session.gate("payments.refund")
        def refund(amounts: List[int]) -> None:
            paid.append(amounts)

        amounts = [5]
        with self.assertRaises(Denied) as raised:
            with Background(lambda: refund(amounts)):
                [gate] = self.console.wait_for_held()
                amounts[0] = 5000
                self.console.pass_request(gate)
        self.assertEqual((raised.exception.code, paid), ("changed", []))
        [done] = self.console.payloads(session.session_id, "action_completed")
        self.assertFalse(done["success"])

    def test_other_parameters_can_be_computed(self) -> None:
        session = self.session()

        @session.gate("note.write", params=lambda path: {"length": len(path)})
        def write(path: str) -> str:
            return path.upper()

        self.assertEqual(write("abc"), "ABC")
        [attempt] = self.console.payloads(session.session_id, "action_attempted")
        self.assertEqual(attempt["action_params"], {"length": 3})


class Reports(ConsoleTest):
    def test_contexts_and_guidance_come_to_the_caller(self) -> None:
        session = self.session()
        given = session.take_given()
        self.assertEqual([context.context_id for context in given.contexts], ["house-rules"])
        self.assertEqual([guidance.content for guidance in given.guidance], ["Be brief."])
        self.assertEqual(given.text(), "Refunds need a person.\n\nBe brief.")
        self.assertFalse(session.take_given())
        accepted = session.context("handbook", "nope")
        self.assertIn("measure twice", accepted.given.text())
        self.assertEqual(accepted.given.not_given[0][0], "nope")
        session.feedback("handbook", True, reason="clear", usage_outcome="applied")
        [feedback] = self.console.payloads(session.session_id, "context_feedback")
        self.assertEqual(feedback["context_id"], "handbook")

    def test_reports_are_recorded(self) -> None:
        session = self.session()
        self.assertIsNone(session.input("close the tickets").modified_input)
        turned = session.turn("we decided to keep T-2", message_id="m-1")
        self.assertEqual((turned.decision, turned.frozen), ("should", False))
        error = session.error("timeout", "no answer", recoverable=True).error
        assert error is not None
        session.recovered(error, "retry")
        session.output("done")
        resolution = session.resolve([{"action": "note.write"}, {"action": "secret.read", "params": {}}])
        [denied] = resolution.denied
        self.assertEqual((resolution.allowed, denied["action"]), (("note.write",), "secret.read"))
        with session.action("note.write", resolution=resolution.resolution_id):
            pass
        types = [event["event_type"] for event in self.console.events(session.session_id)]
        for wanted in ("input_received", "breakpoint_decided", "error_occurred", "error_recovered", "output_produced"):
            self.assertIn(wanted, types)

    def test_a_thread_is_handed_over(self) -> None:
        first, second = self.session(), self.session()
        first.turn("we decided to keep T-2", message_id="m-1", thread="case-1")
        with self.assertRaises(Denied) as raised:
            second.turn("and now?", message_id="m-2", thread="case-1")
        self.assertEqual(raised.exception.code, "thread")
        first.hand_over(second.session_id, "case-1")
        second.turn("and now?", message_id="m-2", thread="case-1")

    def test_a_session_is_resumed_with_its_key_only(self) -> None:
        session = self.session()
        session.request("note.write").complete()
        again = self.session(session_id=session.session_id, key=session.key)
        again.request("note.write").complete()
        with self.assertRaises(Denied) as raised:
            self.session(session_id=session.session_id)
        self.assertEqual(raised.exception.code, "session")
        session.end()
        session.end()
        with self.assertRaises(Denied) as raised:
            again.request("note.write")
        self.assertEqual(raised.exception.code, "ended")
        with self.assertRaises(ValueError):
            self.connect().session("bot", key=session.key)


class Impostors(ConsoleTest):
    def impostor(self, trick: str, real: bool = False) -> Impostor:
        path = self.console.folder / f"{trick}.sock"
        impostor = Impostor(path, trick, self.console.socket if real else None)
        self.addCleanup(impostor.close)
        return impostor

    def test_another_listener_is_never_believed(self) -> None:
        for trick in ("allow", "prove", "garbage"):
            impostor = self.impostor(trick)
            with self.assertRaises(UnverifiedAnswer):
                self.connect(socket=impostor.path)

    def test_another_key_is_refused(self) -> None:
        with TestConsole() as other:
            with self.assertRaisesRegex(UnverifiedAnswer, "not valid"):
                self.connect(key=other.key)

    def test_a_listener_that_takes_over_later_is_never_believed(self) -> None:
        for trick in ("allow", "prove", "change", "replay", "swap"):
            relay = self.impostor(trick, real=trick in ("change", "replay", "swap"))
            client = self.connect()
            session = client.session("bot")
            session.start()
            other = Console(client._settings.__class__(**{**vars(client._settings), "socket": relay.path}))
            stolen = other.session("bot", session_id=session.session_id, key=session.key)
            if trick in ("replay", "swap"):
                stolen.request("note.write")
            with self.assertRaises(CraError) as raised:
                with stolen.action("secret.read"):
                    self.fail("it ran")
            self.assertIsInstance(raised.exception, UnverifiedAnswer, trick)
            self.assertIn("action.request", relay.methods)

    def test_a_busy_console_denies(self) -> None:
        impostor = self.impostor("busy")
        with self.assertRaisesRegex(ConsoleUnavailable, "too many connections"):
            self.connect(socket=impostor.path)

    def test_no_console_and_no_key_deny(self) -> None:
        with self.assertRaisesRegex(ConsoleUnavailable, "no console listens"):
            self.connect(socket=self.console.folder / "none.sock")
        with mock.patch.dict(os.environ):
            os.environ.pop("CRA_ANSWER_KEY", None)
            with self.assertRaisesRegex(InvalidRequest, "no key"):
                Console.connect(self.console.socket)
            os.environ["CRA_ANSWER_KEY"] = self.console.key
            Console.connect(self.console.socket).close()

    def test_the_socket_is_found_as_the_console_chooses_it(self) -> None:
        home = {"XDG_RUNTIME_DIR": "/run/user/7", "XDG_DATA_HOME": "/d"}
        for more, wanted in [
            ({}, "/run/user/7/cra/console.sock"),
            ({"CRA_DATA_DIR": "/x"}, "/x/run/console.sock"),
            ({"CRA_DATA_DIR": "/x", "CRA_SOCKET": "/y"}, "/y"),
            ({"XDG_RUNTIME_DIR": ""}, "/d/cra/run/console.sock"),
        ]:
            self.assertEqual(str(default_socket({**home, **more})), wanted)


class Interruptions(ConsoleTest):
    def setUp(self) -> None:
        self.own = TestConsole()
        self.addCleanup(self.own.close)

    def client(self, **options: Any) -> Console:
        return self.connect(socket=self.own.socket, key=self.own.key, **options)

    def test_a_console_that_is_gone_denies_the_held_request(self) -> None:
        session = self.client(reconnect=0.3).session("bot")
        session.start()

        def refund() -> None:
            with session.action("payments.refund"):
                self.fail("it ran")

        with self.assertRaises(ConsoleUnavailable):
            with Background(refund):
                self.own.wait_for_held()
                self.own.kill()

    def test_a_request_joins_the_held_one_of_a_restarted_console(self) -> None:
        session = self.client().session("bot")
        session.start()
        runs: List[Optional[str]] = []

        def refund() -> None:
            with session.action("payments.refund", {"amount": 5}) as run:
                runs.append(run.approved_by)

        with Background(refund):
            [gate] = self.own.wait_for_held()
            self.own.kill()
            self.own.start()
            self.own.wait_for_joined(1)
            self.assertEqual(self.own.wait_for_held(), [gate])
            self.own.pass_request(gate)
        self.assertEqual(runs, ["op-1"])
        session.end()
        self.assertEqual(len(self.own.payloads(session.session_id, "action_completed")), 1)

    def test_a_request_joins_the_held_one_after_a_cut_connection(self) -> None:
        relay = Impostor(self.own.folder / "relay.sock", "relay", self.own.socket)
        self.addCleanup(relay.close)
        session = self.connect(socket=relay.path, key=self.own.key).session("bot")
        session.start()
        runs: List[str] = []

        def refund() -> None:
            with session.action("payments.refund", {"amount": 5}) as run:
                runs.append(run.execution)

        with Background(refund):
            [gate] = self.own.wait_for_held()
            for times in (1, 2):
                relay.cut()
                self.own.wait_for_joined(times)
            self.assertEqual(self.own.wait_for_held(), [gate])
            self.own.pass_request(gate)
        self.assertEqual(len(runs), 1)
        self.assertEqual(relay.methods.count("action.request"), 3)

    def test_an_approval_while_the_agent_is_away_lets_it_run_once(self) -> None:
        relay = Impostor(self.own.folder / "relay.sock", "relay", self.own.socket)
        session = self.connect(socket=relay.path, key=self.own.key).session("bot")
        session.start()
        runs: List[str] = []

        def refund() -> None:
            with session.action("payments.refund", {"amount": 5}) as run:
                runs.append(run.execution)

        with Background(refund):
            self.own.wait_for_held()
            relay.close()
            self.own.pass_request()
            relay = Impostor(relay.path, "relay", self.own.socket)
        self.addCleanup(relay.close)
        self.assertEqual(len(runs), 1)
        with self.assertRaises(Denied):
            session.request("payments.refund", {"amount": 5}, timeout=0.5)

    def test_idle_connections_outlive_a_restart(self) -> None:
        session = self.client().session("bot")
        session.start()
        self.own.kill()
        self.own.start()
        session.request("note.write").complete()
        session.output("still here")

    def test_a_result_that_cannot_be_reported_is_no_denial(self) -> None:
        session = self.client(reconnect=0.2).session("bot")
        session.start()
        ran: List[bool] = []
        with self.assertRaisesRegex(NotReported, "was not reported"):
            with session.action("note.write"):
                ran.append(True)
                self.own.kill()
        self.assertEqual(ran, [True])

    def test_a_report_is_not_sent_twice(self) -> None:
        relay = Impostor(self.own.folder / "relay.sock", "relay", self.own.socket)
        self.addCleanup(relay.close)
        session = self.connect(socket=relay.path, key=self.own.key).session("bot")
        session.start()
        relay.trick = "hang"
        with self.assertRaisesRegex(ConsoleUnavailable, "may have taken `output`"):
            with Background(lambda: session.output("hello")):
                wait_until("it is sent", lambda: "output" in relay.methods)
                relay.cut()


class Examples(ConsoleTest):
    def test_the_examples_of_the_readme_and_the_guide_run(self) -> None:
        environment = {"CRA_SOCKET": str(self.console.socket), "CRA_ANSWER_KEY": self.console.key}
        pages = [ROOT / "README.md", ROOT.parent.parent / "docs/src/guide/own-agents.md"]
        for page in pages:
            examples = page.read_text().split("```python example\n")[1:]
            self.assertTrue(examples, page)
            for example in examples:
                code = compile(example.split("```")[0], str(page), "exec")
                with mock.patch.dict(os.environ, environment), mock.patch("builtins.print"):
                    with Background(lambda: exec(code, {"__name__": "__main__"})):
                        if "payments.refund" in example:
                            self.console.pass_request()


if __name__ == "__main__":
    unittest.main()
