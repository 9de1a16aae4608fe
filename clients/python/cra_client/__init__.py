"""Client of the cra console: an agent asks before it acts, and a person decides.

    from cra_client import Console, Denied

    with Console.connect(key="ed25519:...") as console:
        with console.session("backup-bot", intent="nightly cleanup") as session:
            with session.action("shell.run", {"command": "ls"}) as run:
                run.result(subprocess.check_output(["ls"], text=True))

The block of an action runs only after the console has allowed exactly this request. Everything else raises: `Denied`,
`ConsoleUnavailable` or another `CraError`.
"""

from ._async import AsyncAction, AsyncConsole, AsyncRun, AsyncSession
from ._settings import KEY_VARIABLE, default_socket
from ._sync import Action, Console, Run, Session
from .errors import (
    AnswersRejected,
    ConsoleUnavailable,
    CraError,
    Denied,
    InvalidRequest,
    NotReported,
    Question,
    QuestionsAsked,
    UnverifiedAnswer,
)
from .types import Accepted, Answered, Context, Given, Guidance, Resolution, Started, Turned

__version__ = "0.1.0"

__all__ = [
    "KEY_VARIABLE",
    "Accepted",
    "Action",
    "Answered",
    "AnswersRejected",
    "AsyncAction",
    "AsyncConsole",
    "AsyncRun",
    "AsyncSession",
    "Console",
    "ConsoleUnavailable",
    "Context",
    "CraError",
    "Denied",
    "Given",
    "Guidance",
    "InvalidRequest",
    "NotReported",
    "Question",
    "QuestionsAsked",
    "Resolution",
    "Run",
    "Session",
    "Started",
    "Turned",
    "UnverifiedAnswer",
    "default_socket",
]
