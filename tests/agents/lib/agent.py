"""The interface of an agent: everything that the shared cases need to know about one."""
import json
import os
import platform
import shutil
from pathlib import Path

from lib.model import calls, says

LIB = Path(__file__).resolve().parent
VERSIONS = json.loads((LIB.parent / "versions.json").read_text())


def machine():
    """The processor, as npm calls it."""
    return {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


class Agent:
    """One agent in one version. Cases know an agent by this class alone."""

    name = ""  # in the names of cases
    installed_as = None  # key in versions.json, if it is not the name
    connects_as = None  # argument of `cra connect`, if it is not the name
    program = ""  # the command that starts it
    settings_file = ""  # in a project, what `cra connect` writes
    in_short_set = True
    shows_reason_of_blocked_prompt = True
    rewrites_settings = False  # by itself, at its start
    without = {}  # shared cases that do not apply, with the reason

    odd_settings = None  # a settings file in a hand of its own, or nothing where the file is cra's alone
    secret_file = ".env"  # a file of secrets that the agent itself would read
    hides_environment = False  # from the commands that it runs
    untrusted_options = ()  # on the command line, to start in a folder that is not trusted
    waiting = None  # what its screen says while a call is held
    working = None  # what its screen says once it has taken a prompt
    tells_end_of_session = True  # to a hook, when it has worked on its prompt
    has_read_tool = True  # and one to search; otherwise both go by the shell
    subagent_options = ()  # on the command line, to have subagents

    def __init__(self, cache):
        key = self.installed_as or self.name
        self.package, self.version = VERSIONS[key]["package"], VERSIONS[key]["version"]
        self.folder = Path(cache) / f"{key}-{self.version}"
        self.modules = self.folder / "node_modules"
        self.connects_as = self.connects_as or self.name

    def binary(self):
        raise NotImplementedError

    @staticmethod
    def node_folder():
        return os.path.dirname(os.path.realpath(shutil.which("node") or "/usr/bin/node"))

    # --- The place

    def environment(self, workspace):
        """Variables of this agent: a fake key, and the address of the model."""
        raise NotImplementedError

    def prepare(self, workspace):
        """Writes what a user of this agent has in the home after the first start."""

    def prepare_project(self, workspace, project):
        """Writes what a project needs beside the connection."""

    def trust(self, workspace, project):
        """Trusts a folder, and what is connected there, as its user does."""

    # --- The command line

    def headless(self, prompt, *options):
        """The command that works on one prompt without asking its own user anything."""
        raise NotImplementedError

    def interactive(self, workspace, project):
        """The command that starts it in a terminal."""
        raise NotImplementedError

    def await_prompt(self, screen):
        """Waits until it takes a prompt in its terminal, and answers what it asks before."""
        raise NotImplementedError

    def confirm(self, screen):
        """Answers its own question about a call that was passed, if it asks one."""

    # --- Calls that the model makes

    def shell(self, command):
        raise NotImplementedError

    def side_by_side(self, *commands):
        """A step that runs several commands at once."""
        return calls(*[self.shell(command) for command in commands])

    def delete(self, folder):
        """Deletes a folder of the home: `destroy-files` of the rules for coding agents holds it."""
        return self.shell(f"find ~/{folder.name} -delete")

    def write(self, path, text):
        raise NotImplementedError

    def read_before_write(self, path):
        """What this agent wants before it writes over a file."""
        return self.shell("true")

    def read(self, path):
        raise NotImplementedError

    def search(self, path, pattern):
        """Prints the lines of a file that match."""
        raise NotImplementedError

    def mcp(self, arguments):
        """Calls `touch` of the MCP server `suite`."""
        raise NotImplementedError

    def connect_mcp(self, workspace, project):
        """Makes the MCP server `suite` known. Returns options for the command line."""
        return []

    def subagent(self, prompt):
        """The steps of a model that hands a prompt to a subagent and waits for it."""
        raise NotImplementedError

    # --- For the recorder

    def more_tools(self, project):
        """Calls of tools that only this agent has."""
        return []

    def asking(self, prompt):
        """The command that works on one prompt and would ask its own user, or nothing."""
        return None

    def end_of_subagent(self):
        """The step by which a subagent ends."""
        return says("a part is done")
