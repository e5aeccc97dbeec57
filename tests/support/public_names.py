"""Writes what type checkers read of the public names: ``python tests/support/public_names.py [--check]``.

The package loads a name when it is used, which no type checker can follow.  For them it imports every name in a
block that never runs.  This program makes that block from the lists that are used when the package runs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import syncedmem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["filled", "main"]

START, END = "    # Made by `make generated`.\n", "    # isort: on\n"


def filled(source: str, homes: Mapping[str, str], whole: Sequence[str]) -> str:
    """The source with that block as it must be; a name that is imported as itself is public, as checkers see it."""
    lines = [f"    from .{home} import {name} as {name}\n" for name, home in sorted(homes.items())]
    lines += [f"    from .{module} import *  # noqa: F403 -- as _WHOLE says\n" for module in whole]
    before, start, rest = source.partition(START)
    _, end, after = rest.partition(END)
    return "".join((before, start, *lines, end, after))


def main(arguments: Sequence[str], path: Path) -> int:
    """Write the block, or with ``--check`` say that it is not up to date."""
    source = path.read_text(encoding="utf-8")
    wanted = filled(source, syncedmem._ROOMS, syncedmem._WHOLE)  # pyright: ignore[reportPrivateUsage] -- the lists
    if wanted == source:
        return 0
    if "--check" in arguments:
        sys.stderr.write(f"{path.name} is not up to date: make generated\n")
        return 1
    path.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(syncedmem.__file__)))
