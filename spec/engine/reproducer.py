"""The reproducer: the calls on memories under test, as Python statements.

The statements are not a description of the calls.  Every call is executed from the line that a reproducer shows, so
a reproducer cannot differ from what was run.  The checks of the kit (heads, flags, bytes read without the
memory's help) are not part of the reproducer.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from syncedmem.model import Mode, using_mode

from .call_log import InjectedInterrupt
from .violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

    from .subject import Subject

__all__ = ["Imports", "Outcome", "Reproducer", "program_of"]

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
"""The names that every reproducer may use, by their module; and ``gc``."""

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


class Outcome(NamedTuple):
    """The result of a call: the error that it raised, or the value that it returned."""

    raised: BaseException | None
    value: Any


class Reproducer:
    """Statements and calls, run one by one and recorded.

    Parameters
    ----------
    subject : Subject
        The reproducer calls it ``subject``.
    more : tuple of (str, tuple of str)
        Modules and their names that reproducers of this kit may also use.

    Attributes
    ----------
    lines : list of str
    names : dict
        The names that the reproducer has defined.
    settings : dict of str to str
        The settings of the subject's machine that were set, besides Caffe's mode.
    more : tuple of (str, tuple of str)
    """

    def __init__(self, subject: Subject, more: Imports = ()) -> None:
        self.subject = subject
        self.lines: list[str] = []
        self.names: dict[str, Any] = {**_imported(more), "subject": subject}
        self.more: Imports = more
        self.settings: dict[str, str] = {}
        self._mode = Mode.GPU  # the mode if none is set
        self._used: Counter[str] = Counter()
        self._call: tuple[str, str] = ("", "")

    def fresh(self, name: str) -> str:
        """A name that is not used yet: ``memory``, then ``memory2``, and so on."""
        self._used[name] += 1
        return name if self._used[name] == 1 else f"{name}{self._used[name]}"

    def note(self, line: str) -> None:
        """Add a line that has been run already."""
        self.lines.append(line)

    def run(self, statement: str) -> None:
        """Run a statement."""
        self.lines.append(statement)
        self._tell()
        exec(_compiled(statement, "exec"), self.names)  # noqa: S102 -- the line that is shown is the line that is run

    def call(self, expression: str, mode: Mode, *, keep: str = "", within: str = "") -> Outcome:
        """Make a call that may be refused or fail.

        Parameters
        ----------
        expression : str
        mode : Mode
            Caffe's mode during the call.
        keep : str
            The name for the result.
        within : str
            A context manager around the call.
        """
        if mode is not self._mode:
            self.lines.append(f"set_mode(Mode.{mode.name})")
            self._mode = mode
        self._call = (within, f"{keep} = {expression}" if keep else expression)
        self.lines.append(f"with {within}: {self._call[1]}" if within else self._call[1])
        self._tell()
        inside = eval(_compiled(within, "eval"), self.names) if within else nullcontext()  # noqa: S307 -- as above
        try:
            with using_mode(mode), inside:
                value = eval(_compiled(expression, "eval"), self.names)  # noqa: S307 -- as above
        except Violation:
            raise
        except (Exception, InjectedInterrupt, SystemExit) as error:  # noqa: BLE001 -- subjects may raise any error
            return Outcome(error, None)
        if keep:
            self.names[keep] = value
        return Outcome(None, value)

    def _tell(self) -> None:
        if self.subject.journal is not None:
            self.subject.journal(self.more, self.lines)

    def expect(self, raised: BaseException) -> None:
        """Note that the last call had to raise, so that a run of the reproducer continues after it."""
        within, call = self._call
        family = "Exception" if isinstance(raised, Exception) else "BaseException"
        self.lines[-1] = f"with {within}{', ' if within else ''}suppress({family}): {call}"

    def complete(self) -> tuple[str, ...]:
        """The whole program, with its imports; the requests, if the subject is a program."""
        if self.subject.program is not None:
            return self.subject.program.requests()
        return program_of(self.lines, self.subject, self.more)


def program_of(lines: Iterable[str], subject: Subject, more: Imports = ()) -> tuple[str, ...]:
    """These statements as a whole program, with its imports."""
    lines = tuple(lines)
    used = (name for line in lines for name in _NAME.findall(line))
    return (*_imports(used, more), *subject.source.splitlines(), *lines)


def _imports(words: Iterable[str], more: Imports) -> Iterator[str]:
    """The import statements for these names."""
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
    exec("\n".join(_imports(every, more)), names)  # noqa: S102 -- the first lines of a reproducer
    return names


@lru_cache(maxsize=1 << 14)
def _compiled(source: str, mode: Literal["exec", "eval"]) -> CodeType:
    return compile(source, "<reproducer>", mode)
