"""Serves an object that answers requests, over standard input and standard output: here a shared library."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if not __package__:  # it is run as a folder, and its own imports are relative
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "harness"
    import_module(__package__)
    del sys.path[0]

from .library import Library, LibraryError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(json.loads(line)), separators=(",", ":")).encode() + b"\n")
        answers.flush()


@contextmanager
def _streams() -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Standard input and output, which nobody else has inside the block.

    What the library prints goes to standard error, and it finds its standard input empty.
    """
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        yield requests, answers


def main(arguments: list[str]) -> int:
    """Load the library that is named, and answer requests; the status to exit with."""
    if len(arguments) != 1:
        print("give one shared library: harness ./libport.so", file=sys.stderr)  # noqa: T201 -- a program
        return 2
    with _streams() as (requests, answers):
        try:
            library = Library(arguments[0])
        except LibraryError as error:
            sentence = str(error)
            serve(lambda request: {"id": request["id"], "refused": sentence}, requests, answers)
            return 2
        try:
            with library:
                serve(library.answer, requests, answers)
        except LibraryError as error:
            print(error, file=sys.stderr)  # noqa: T201 -- a program
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
