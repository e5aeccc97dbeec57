"""What this version no longer has, and what to use in its place; the next version has no such table.

A key is a public name, ``--format NAME``, or a command with its option, as it is typed.
"""

from __future__ import annotations

from typing import Final

__all__ = ["GONE", "gone"]

GONE: Final[dict[str, str]] = {
    "vectors --archive": "Write the files with `syncedmem vectors --out FOLDER`, and pack them with tar.",
    "fuzz --log": "Take the requests of the log in a test of your own, with `driver_of` of `syncedmem.spec.fuzz`.",
    "fuzz --corpus": "Keep the replay files of findings, and repeat them with `syncedmem replay`.",
    "fuzz --sanitizer": "Build the library with -fsanitize=address, and fuzz it with LD_PRELOAD=libasan.so.",
    "conform --first": "Leave it out: the first violation ends the test; --keep-going goes on.",
    "conform --memory": "Leave it out: a port has 4,096 MiB of private memory.",
    "verify --processes": "Leave it out: as many checks run at a time as there are processors.",
}
"""What to do instead, as a sentence that begins with a verb."""


def gone(key: str) -> str:
    """What is said of something that is gone, and empty if it is not.

    Examples
    --------
    >>> gone("verify")
    ''
    """
    return f"{key} is gone: {GONE[key]}" if key in GONE else ""
