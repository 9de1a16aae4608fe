"""Where the console is, and how long the client waits."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Mapping, Optional, Union

from ._proof import AnswerKey
from .errors import InvalidRequest

#: Environment variable with the public key of the console's answers.
KEY_VARIABLE = "CRA_ANSWER_KEY"


def _folder_of(environment: Mapping[str, str], name: str) -> Optional[Path]:
    value = environment.get(name)
    return Path(value) if value else None


def default_socket(environment: Optional[Mapping[str, str]] = None) -> Path:
    """Returns the path where `cra` listens in this environment."""
    found = os.environ if environment is None else environment
    named = _folder_of(found, "CRA_SOCKET")
    if named is not None:
        return named
    data = _folder_of(found, "CRA_DATA_DIR")
    runtime = _folder_of(found, "XDG_RUNTIME_DIR")
    if data is None and runtime is not None:
        return runtime / "cra" / "console.sock"
    if data is None:
        home = _folder_of(found, "XDG_DATA_HOME") or Path.home() / ".local" / "share"
        data = home / "cra"
    return data / "run" / "console.sock"


@dataclass(frozen=True)
class Settings:
    """Settings of a client."""

    socket: Path
    key: AnswerKey
    action_timeout: float
    call_timeout: float
    reconnect: float

    def for_first_call(self) -> "Settings":
        """The same without waiting for a console that is not there."""
        return replace(self, reconnect=0.0)


def make_settings(
    socket: Union[str, "os.PathLike[str]", None],
    key: Optional[str],
    action_timeout: float,
    call_timeout: float,
    reconnect: float,
) -> Settings:
    """Creates settings. Without a key, no answer could be verified, so that is an error."""
    named = key or os.environ.get(KEY_VARIABLE)
    if not named:
        raise InvalidRequest(
            f"no key: give `key`, or set {KEY_VARIABLE}, to the text that `cra trace key --answers` prints"
        )
    for name, value in [("action_timeout", action_timeout), ("call_timeout", call_timeout)]:
        if not value > 0:
            raise ValueError(f"`{name}` must be above 0")
    path = default_socket() if socket is None else Path(socket)
    return Settings(path, AnswerKey(named), action_timeout, call_timeout, reconnect)
