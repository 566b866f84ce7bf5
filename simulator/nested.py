"""Values nested in lists, tuples and dicts, as operations take and return them.

torch's own tree functions serve any container and cost several times as much, at every operation.
"""

from collections.abc import Callable, Iterator
from typing import Any

_SEQUENCES = (list, tuple)


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values inside nested lists, tuples and dicts, in order."""
    if isinstance(value, _SEQUENCES):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    else:
        yield value


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the same nesting with ``function`` of every value inside."""
    kind = type(value)
    if kind is list:
        return [mapped(function, part) for part in value]
    if kind is tuple:
        return tuple(mapped(function, part) for part in value)
    if kind is dict:
        return {key: mapped(function, part) for key, part in value.items()}
    return function(value)
