"""Installs agents in pinned versions from npm. No script of a package runs, and nothing is written down about where
packages came from."""
import os
import shutil
import subprocess
import sys
import tempfile

TRIES = 3
MARK = "installed"


def install(agent):
    """Installs an agent if it is not in the cache. Returns the reason why it cannot be used, or nothing."""
    if (agent.folder / MARK).exists() and agent.binary().exists():
        return None
    agent.folder.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, TRIES + 1):
        # A folder of its own until it is complete: two runs of the suite may install at the same time.
        folder = tempfile.mkdtemp(prefix=f".{agent.folder.name}-", dir=agent.folder.parent)
        command = ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund",
                   "--no-package-lock", "--loglevel", "error", "--fetch-retries", "1", "--fetch-retry-mintimeout", "2000", f"{agent.package}@{agent.version}"]
        print(f"installing {agent.package}@{agent.version}", file=sys.stderr, flush=True)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            open(os.path.join(folder, MARK), "w", encoding="utf-8").close()
            shutil.rmtree(agent.folder, ignore_errors=True)
            os.rename(folder, agent.folder)
            if agent.binary().exists():
                return None
            return f"{agent.package}@{agent.version} has no program for this machine"
        shutil.rmtree(folder, ignore_errors=True)
        said = ((done.stderr or done.stdout).strip().splitlines() or ["npm failed"])[0]
        print(f"attempt {attempt} of {TRIES}: {said}", file=sys.stderr, flush=True)
    return f"{agent.package}@{agent.version} cannot be installed from npm ({said})"
