"""The list of cases: functions that take a workspace, by agent."""
import functools


class Case:
    def __init__(self, agent, name, short, function, seconds):
        self.agent, self.name, self.short, self.function, self.seconds = agent, name, short, function, seconds

    def __str__(self):
        return f"{self.agent} {self.name}"

    @property
    def summary(self):
        return " ".join((self.function.__doc__ or "").split())


SHARED, OWN = [], {}


def case(*agents, short=False, seconds=240, variants=None):
    """Makes a function a case. Without agents it is a case of every agent. With variants it is a case for each of
    them, which gets the value as its second argument; a dict in a dict holds variants by agent."""
    def register(function):
        for variant, value in (variants or {None: None}).items():
            name = function.__name__ + (f"[{variant}]" if variant else "")
            body = function
            if variant:
                body = functools.partial(function, variant=value)
                body.__doc__ = function.__doc__
            entry = (name, short, body, seconds)
            if agents:
                for agent in agents:
                    OWN.setdefault(agent, []).append(entry)
            else:
                SHARED.append(entry)
        return function
    return register


def cases_of(agent):
    """Every case of an agent, shared ones first."""
    found = [Case(agent.name, *entry) for entry in [*SHARED, *OWN.get(agent.name, [])]
             if entry[0].split("[")[0] not in agent.without]
    if not agent.in_short_set:
        for one in found:
            one.short = False
    return found
