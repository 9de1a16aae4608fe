"""Values that the console returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple


@dataclass(frozen=True)
class Context:
    """A text that the Atlas gives to the agent."""

    context_id: str
    content: str


@dataclass(frozen=True)
class Guidance:
    """Guidance of a checkpoint. `block` has all of its fields."""

    checkpoint_id: str
    content: str
    block: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Given:
    """Contexts and guidance that came along with an answer."""

    contexts: Tuple[Context, ...] = ()
    guidance: Tuple[Guidance, ...] = ()
    withdrawn: Tuple[str, ...] = ()
    not_given: Tuple[Tuple[str, str], ...] = ()
    warnings: Tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.contexts or self.guidance or self.withdrawn or self.not_given or self.warnings)

    def __add__(self, other: "Given") -> "Given":
        return Given(
            self.contexts + other.contexts,
            self.guidance + other.guidance,
            self.withdrawn + other.withdrawn,
            self.not_given + other.not_given,
            self.warnings + other.warnings,
        )

    def text(self) -> str:
        """The contexts and the guidance as one text for a prompt."""
        contexts = [context.content for context in self.contexts]
        return "\n\n".join(contexts + [guidance.content for guidance in self.guidance])


def given_in(result: Mapping[str, Any]) -> Given:
    """Reads the member `given` of a result."""
    given = result.get("given")
    if not isinstance(given, dict):
        return Given()
    guidance = []
    for item in _objects(given.get("guidance")):
        block = item.get("block")
        block = block if isinstance(block, dict) else {}
        guidance.append(Guidance(str(item.get("checkpoint_id")), str(block.get("content", "")), block))
    contexts = _objects(given.get("contexts"))
    refused = _objects(given.get("not_given"))
    return Given(
        tuple(Context(str(item.get("context_id")), str(item.get("content", ""))) for item in contexts),
        tuple(guidance),
        _texts(given.get("withdrawn")),
        tuple((str(item.get("context_id")), str(item.get("reason"))) for item in refused),
        _texts(given.get("warnings")),
    )


def _objects(value: Any) -> List[Dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> Tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class Allowed:
    """Permission for one run of an action."""

    execution: str
    given: Given
    approved_by: Optional[str]


@dataclass(frozen=True)
class Started:
    """A started session."""

    session_id: str
    key: str = field(repr=False)
    held: Tuple[str, ...]
    asked: Tuple[Mapping[str, Any], ...]
    given: Given


@dataclass(frozen=True)
class Accepted:
    """Answer to an input, a context request or a reported error."""

    given: Given
    modified_input: Optional[str]
    held: Tuple[str, ...]
    error: Optional[str]


@dataclass(frozen=True)
class Answered:
    """Answer to `answer_checkpoint`. The request runs after it was sent again."""

    given: Given
    permit_until: Optional[str]
    needs_operator: bool


@dataclass(frozen=True)
class Turned:
    """Answer to a turn of a thread. `fields` has everything."""

    decision: str
    frozen: bool
    summary: str
    version: int
    etag: str
    memento: Any
    given: Given
    held: Tuple[str, ...]
    fields: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Resolution:
    """Actions that the agent may ask for now. It permits nothing. `fields` has everything."""

    resolution_id: str
    allowed: Tuple[str, ...]
    denied: Tuple[Mapping[str, Any], ...]
    constraints: Tuple[Mapping[str, Any], ...]
    expires_at: str
    fields: Mapping[str, Any] = field(repr=False)


def started_in(result: Mapping[str, Any]) -> Started:
    """Reads the result of `session.start`."""
    return Started(
        str(result.get("session")),
        str(result.get("key")),
        _texts(result.get("held")),
        tuple(_objects(result.get("asked"))),
        given_in(result),
    )


def accepted_in(result: Mapping[str, Any]) -> Accepted:
    """Reads the result of an event of the agent."""
    return Accepted(
        given_in(result),
        _text(result.get("modified_input")),
        _texts(result.get("held")),
        _text(result.get("error")),
    )


def answered_in(result: Mapping[str, Any]) -> Answered:
    """Reads the result of `checkpoint.answer`."""
    return Answered(given_in(result), _text(result.get("permit_until")), result.get("needs_operator") is True)


def turned_in(result: Mapping[str, Any]) -> Turned:
    """Reads the result of `turn`."""
    version = result.get("version")
    return Turned(
        str(result.get("decision")),
        result.get("frozen") is True,
        str(result.get("summary")),
        version if isinstance(version, int) else 0,
        str(result.get("etag")),
        result.get("memento"),
        given_in(result),
        _texts(result.get("held")),
        result,
    )


def resolution_in(result: Mapping[str, Any]) -> Resolution:
    """Reads the result of `resolve`."""
    return Resolution(
        str(result.get("id")),
        _texts(result.get("allowed")),
        tuple(_objects(result.get("denied"))),
        tuple(_objects(result.get("constraints"))),
        str(result.get("expires_at")),
        result,
    )
