"""A corpus: programs that reached new behaviour or failed, in a folder; the next run begins with them.

A file is named after its contents.  So corpora of several machines are one if their files are in one folder.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from syncedmem.model import FileAccessError
from syncedmem.model.files import refused, write_whole

from .finding import OPERATIONS, HeapStep, TargetError, read_object
from .loops import folded, items_as_json, items_from_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .driver import Driver

__all__ = ["Behaviour", "Corpus"]

FORMAT = 1
_KIND = "syncedmem fuzz corpus"
_WANTED = "a program of a corpus of fuzz"


class Corpus:
    """A folder of programs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = sorted(folder.glob("*.json"))
        except FileExistsError as error:
            raise FileAccessError(str(folder), "it is not a directory", error.errno) from error
        except OSError as error:
            raise refused(str(folder), error) from error
        self.programs: list[tuple[HeapStep, ...]] = [_read(file) for file in files]

    def add(self, program: tuple[HeapStep, ...]) -> None:
        """Keep a program."""
        data = {"format": FORMAT, "kind": _KIND, "program": items_as_json(folded(program))}
        text = json.dumps(data).encode() + b"\n"
        path = self._folder / f"{sha256(text).hexdigest()[:16]}.json"
        if program and not path.exists():
            write_whole(path, lambda file: file.write(text))


def _read(path: Path) -> tuple[HeapStep, ...]:
    data = read_object(path, "program of a corpus", _WANTED)
    if (data.get("kind"), data.get("format")) != (_KIND, FORMAT):
        raise TargetError(f"{path} is no program of a corpus of format {FORMAT}; wanted is {_WANTED}")
    if not isinstance(data.get("program"), list):
        raise TargetError(f"{path} is no program of a corpus: 'program' is missing or wrong")
    return items_from_json(data["program"])


class Behaviour:
    """What rounds have done: each operation with its outcome and the class of its size, and which came after which."""

    def __init__(self, seen: list[str]) -> None:
        self.seen: set[str] = set(seen)
        self._before = len(self.seen)
        self._last = ""

    def watch(self, driver: Driver) -> None:
        """Watch all steps of a driver."""
        self._before, self._last = len(self.seen), "start"
        for operation in OPERATIONS:
            setattr(driver, operation, self._watched(operation, getattr(driver, operation)))

    @property
    def is_new(self) -> bool:
        """Whether the round that is watched did something that no round has done before."""
        return len(self.seen) > self._before

    def _watched(self, operation: str, method: Callable[..., bool]) -> Callable[..., bool]:
        names = OPERATIONS[operation]
        at = names.index("size") if "size" in names else None

        def call(*numbers: int) -> bool:
            try:
                done = method(*numbers)
            except BaseException:
                self.seen.add(f"{operation} raised")
                raise
            outcome = f"{operation} {'done' if done else 'not done'}"
            self.seen.add(outcome if at is None else f"{outcome} {numbers[at].bit_length()}")
            self.seen.add(f"{self._last}, {outcome}")
            self._last = outcome
            return done

        return call
