"""What is done to memories under test, written down as Python.

The text is not told beside what happens: it *is* what happens.  Every statement is run from the very line that a
reproducer will show, so that a reproducer cannot say anything else than what was done.  What the kit does to look
(heads, flags, the bytes behind the memory's back) is not part of it.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from syncedmem.model import Mode, using_mode

from .call_log import InjectedInterrupt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

    from .subject import Subject

__all__ = ["Imports", "Outcome", "Reproducer"]

Imports = tuple[tuple[str, tuple[str, ...]], ...]

_IMPORTS: Imports = (
    ("array", ("array",)),
    ("contextlib", ("suppress",)),
    ("ctypes", ("c_char",)),
    ("math", ("inf", "nan")),
    ("types", ("SimpleNamespace",)),
    ("syncedmem.model", ("Mode", "set_mode")),
    ("syncedmem.spec.engine.contents", ("Watched", "pattern", "put")),
    ("syncedmem.spec.engine.call_log", ("InjectedInterrupt", "recorded")),
)
"""The names that any reproducer may use, by the module they come from; and ``gc``."""

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


class Outcome(NamedTuple):
    """What came of a call: the error that it raised, or what it returned."""

    raised: BaseException | None
    value: Any


class Reproducer:
    """Statements and calls, run one by one and remembered.

    Parameters
    ----------
    subject : Subject
        Known to the reproducer as ``subject``.
    more : tuple of (str, tuple of str)
        Modules, and the names of each that this kit's reproducers may use too.

    Attributes
    ----------
    lines : list of str
    names : dict
        What the reproducer has defined.
    """

    def __init__(self, subject: Subject, more: Imports = ()) -> None:
        self.subject = subject
        self.lines: list[str] = []
        self.names: dict[str, Any] = {**_imported(more), "subject": subject}
        self._more = more
        self._mode = Mode.GPU  # which is in force where nobody has set any
        self._used: Counter[str] = Counter()
        self._call: tuple[str, str] = ("", "")

    def fresh(self, name: str) -> str:
        """A name that the reproducer does not use yet: ``memory``, then ``memory2``, and so on."""
        self._used[name] += 1
        return name if self._used[name] == 1 else f"{name}{self._used[name]}"

    def note(self, line: str) -> None:
        """Write a line that need not be run again."""
        self.lines.append(line)

    def run(self, statement: str) -> None:
        """Run a statement."""
        self.lines.append(statement)
        exec(_compiled(statement, "exec"), self.names)  # noqa: S102 -- what is shown is what is run

    def call(self, expression: str, mode: Mode, *, keep: str = "", within: str = "") -> Outcome:
        """Make a call that may be refused or fail.

        Parameters
        ----------
        expression : str
        mode : Mode
            Caffe's mode during the call.
        keep : str
            The name that its result gets.
        within : str
            A context manager to make it in.
        """
        if mode is not self._mode:
            self.lines.append(f"set_mode(Mode.{mode.name})")
            self._mode = mode
        self._call = (within, f"{keep} = {expression}" if keep else expression)
        self.lines.append(f"with {within}: {self._call[1]}" if within else self._call[1])
        inside = eval(_compiled(within, "eval"), self.names) if within else nullcontext()  # noqa: S307 -- as above
        try:
            with using_mode(mode), inside:
                value = eval(_compiled(expression, "eval"), self.names)  # noqa: S307 -- as above
        except (Exception, InjectedInterrupt, SystemExit) as error:  # noqa: BLE001 -- a subject refuses with whatever it likes
            return Outcome(error, None)
        if keep:
            self.names[keep] = value
        return Outcome(None, value)

    def expect(self, raised: BaseException) -> None:
        """The call that was made last had to raise: whoever runs the reproducer must get past it."""
        within, call = self._call
        family = "Exception" if isinstance(raised, Exception) else "BaseException"
        self.lines[-1] = f"with {within}{', ' if within else ''}suppress({family}): {call}"

    def complete(self) -> tuple[str, ...]:
        """The whole program, with what it imports."""
        used = (name for line in self.lines for name in _NAME.findall(line))
        return (*_imports(used, self._more), *self.subject.source.splitlines(), *self.lines)


def _imports(words: Iterable[str], more: Imports) -> Iterator[str]:
    """The import statements that some words need."""
    used = set(words)
    if "gc" in used:
        yield "import gc"
    for module, names in sorted((*_IMPORTS, *more)):
        if needed := [name for name in names if name in used]:
            yield f"from {module} import {', '.join(needed)}"


@cache
def _imported(more: Imports) -> dict[str, Any]:
    names: dict[str, Any] = {}
    every = ("gc", *(name for _, listed in (*_IMPORTS, *more) for name in listed))
    exec("\n".join(_imports(every, more)), names)  # noqa: S102 -- the lines that a reproducer begins with
    return names


@lru_cache(maxsize=1 << 14)
def _compiled(source: str, mode: Literal["exec", "eval"]) -> CodeType:
    return compile(source, "<reproducer>", mode)
