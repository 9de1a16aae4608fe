"""Arguments of gated functions as parameters of an action."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ._wire import JsonObject, exact_text, plain_copy
from .errors import Denied

_OWNERS = ("self", "cls")


class ActionArguments:
    """Reads the parameters of an action from the arguments of a call."""

    def __init__(
        self, function: Callable[..., Any], params: Optional[Callable[..., Mapping[str, Any]]]
    ) -> None:
        self._signature = inspect.signature(function)
        self._params = params

    def params(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> JsonObject:
        """Returns the parameters: the arguments by name, with defaults and without `self`."""
        if self._params is not None:
            copied: JsonObject = plain_copy(self._params(*args, **kwargs))
            return copied
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named: Dict[str, Any] = {}
        for at, (name, value) in enumerate(bound.arguments.items()):
            kind = self._signature.parameters[name].kind
            if at == 0 and name in _OWNERS:
                continue
            # `f(**{"x": 1})` and `f(x=1)` are one call, but a named argument is never overwritten.
            if kind is inspect.Parameter.VAR_KEYWORD and not set(value) & set(bound.arguments):
                named.update(value)
            else:
                named[name] = value
        copied = plain_copy(named)
        return copied

    def check_unchanged(self, args: Tuple[Any, ...], kwargs: Dict[str, Any], allowed: JsonObject) -> None:
        """Raises if the arguments have changed since they were allowed."""
        if exact_text(self.params(args, kwargs)) != exact_text(allowed):
            raise Denied("the arguments changed while the request was held", "changed")
