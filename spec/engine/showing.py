"""What a reproducer of a report prints at its end: what was seen, to compare with what was expected."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from .call_log import CallLog

if TYPE_CHECKING:
    from .violation import Violation

__all__ = ["show", "showing", "told"]

_LONGEST = 32
"""Bytes of a view that are shown."""

_LOG = re.compile(r"(\w+), \w+, \w+ = recorded\(subject\)")
_MADE = re.compile(r"(\w+) = subject\.make\(.*")


def show(**seen: Any) -> None:
    """Print what was seen, each thing in a line with its name."""
    for name, it in seen.items():
        print(f"{name}: {told(it)}")  # noqa: T201 -- this is what it is for


def told(seen: Any) -> str:
    """A log as its calls, a memory as its head, a view as its bytes, and anything else as Python shows it."""
    if isinstance(seen, CallLog):
        return ", ".join(f"{it.operation} {it.side} {it.byte_size}" for it in seen.calls) or "no calls"
    if (head := getattr(seen, "head", None)) is not None:
        return getattr(head, "name", None) or str(head)
    get: Any = getattr(seen, "get", None)
    try:
        raw: Any = memoryview(seen) if get is None else get()
        content = bytes(raw)
    except TypeError:
        return repr(seen)
    more = f"... ({len(content)} bytes)" if content[_LONGEST:] else ""
    return (content[:_LONGEST].hex() or "no bytes") + more


def showing(violation: Violation) -> str:
    """The reproducer of a violation, which also prints what is seen at its end, if it has a log of calls."""
    lines = list(violation.statements)
    names = [found[1] for line in lines if (found := _LOG.fullmatch(line))]
    if not names:
        return violation.reproducer
    made = [found[1] for line in lines if (found := _MADE.fullmatch(line))]
    last = ast.parse(lines[-1]).body
    if [type(it) for it in last] == [ast.Expr]:
        lines[-1] = f"result = {lines[-1]}"
        names.append("result")
    seen = ", ".join(f"{name}={name}" for name in (*names, *made))
    ended = violation.reproducer.splitlines()[-1]
    return "\n".join(("from syncedmem.spec.engine.showing import show", *lines, f"show({seen})", ended))
