"""Where things are on this machine: the program under test, and the cache of installed agents."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def cache_folder():
    return Path(os.environ.get("CRA_AGENTS_CACHE") or Path.home() / ".cache/cra-test-agents")


def program():
    """The cra under test."""
    given = os.environ.get("CRA_BIN")
    if not given:
        subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
        given = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/cra"
    given = Path(given).resolve()
    if given.name != "cra" or not os.access(given, os.X_OK):
        sys.exit(f"CRA_BIN must name a program called `cra`, and is `{given}`")
    return given
