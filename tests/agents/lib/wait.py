"""Waiting for a state, with a deadline. Nothing in this suite sleeps for a fixed time and hopes."""
import time

# Long enough for a busy machine with two cores. A test that passes never waits that long.
PATIENCE = 60


class TimedOut(AssertionError):
    """A state that did not come in time."""


def until(what, probe, seconds=PATIENCE, every=0.1):
    """Calls `probe` until it returns something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimedOut(f"waited {seconds} s for: {what}")
        time.sleep(every)


def happens(probe, seconds, every=0.1):
    """Whether `probe` returns something true within that time."""
    try:
        return until("", probe, seconds, every)
    except TimedOut:
        return None
