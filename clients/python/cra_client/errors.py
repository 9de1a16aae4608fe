"""Errors of the client. None of them lets an action run.

An action may run only inside the block of `Session.action`, after `Session.request` has returned, or inside a function
under `Session.gate`. Every other outcome is one of these errors.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence


class CraError(Exception):
    """Base class of all errors of this package."""

    @property
    def reason(self) -> str:
        """Reason for a person or a model."""
        return str(self)


class InvalidRequest(CraError):
    """The request cannot be sent, or the console says that it is malformed. Nothing was allowed."""


class Denied(CraError):
    """The console denied the request.

    `code` is for programs (`refused`, `policy`, `expired` and others), `help` says what could be done, and `gate` names
    the gate that held the request.
    """

    def __init__(
        self, reason: str, code: str = "denied", help: Optional[str] = None, gate: Optional[str] = None
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.help = help
        self.gate = gate

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.code, self.help, self.gate))

    @property
    def explanation(self) -> str:
        """Reason and help in one text, for the model that asked."""
        return f"{self} ({self.help})" if self.help else str(self)


class Question:
    """One question of a checkpoint to the agent."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields: Dict[str, Any] = dict(fields)
        self.question_id = str(fields.get("question_id", ""))
        self.text = str(fields.get("question", ""))
        self.response_type = str(fields.get("response_type", "text"))

    def __repr__(self) -> str:
        return f"Question({self.question_id!r}, {self.text!r}, {self.response_type!r})"


class QuestionsAsked(Denied):
    """The request is held until the agent answers questions.

    Answer with `Session.answer_checkpoint(error.gate, {checkpoint: {question: answer}})`, and send the same request
    again. Or give the session an `on_questions` function, and the client does both.
    """

    def __init__(
        self, reason: str, asked: Mapping[str, Any], problems: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(reason, "asked", None, str(asked.get("gate")))
        self.asked: Dict[str, Any] = dict(asked)
        self.problems: List[Dict[str, Any]] = [dict(problem) for problem in problems]

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.asked, self.problems))

    @property
    def needs_operator(self) -> bool:
        """True when an operator must answer, too."""
        return bool(self.asked.get("operator"))

    @property
    def questions(self) -> Dict[str, List[Question]]:
        """The questions, by checkpoint."""
        gates = [gate for gate in self.asked.get("gates", []) if isinstance(gate, dict)]
        names = [str(gate.get("checkpoint_id", "")) for gate in gates]
        found: Dict[str, List[Question]] = {}
        for gate, name in zip(gates, names):
            # Two checkpoints of one name are told apart by their Atlas.
            full = f"{gate.get('atlas_id', '')}/{name}" if names.count(name) > 1 else name
            asked = [question for question in gate.get("questions", []) if isinstance(question, dict)]
            found[full] = [Question(question) for question in asked]
        return found


class AnswersRejected(Denied):
    """The agent's answers break rules of the questions. The request is still held."""

    def __init__(self, reason: str, gate: Optional[str], problems: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(reason, "invalid_answers", None, gate)
        self.problems: List[Dict[str, Any]] = [dict(problem) for problem in problems]

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.gate, self.problems))


class ConsoleUnavailable(CraError):
    """No console answered: it is not running, it closed the connection, or the time was up."""


class UnverifiedAnswer(ConsoleUnavailable):
    """An answer was not signed with the console's key: another process listens at the socket, or the key is wrong."""


class NotReported(CraError):
    """The action ran, and its result could not be reported. Do not run it again because of this error."""
