"""Follows a tutorial as its reader does: saves its files, changes them, runs its commands, and compares their output.

The sentence before a block says what the block is for.  It ends with the name of a file and a colon:

- ``Save this as `pool.c`:`` writes the block to the file, and ``Add to `pool.c`:`` appends it;
- ``Change `pool.c`:`` before a block of ``diff`` replaces lines of the file;
- ``Put it in place of `int x;` in `pool.c`:`` replaces the line that has these words;
- a block of ``console`` has commands after ``$``, each with its output.

A line ``...`` of an output stands for any lines, and addresses may differ.  A command ends with status 0, unless the
next command is ``echo $?``, which shows the status.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Block", "WrongTutorialError", "blocks", "follow"]

BLOCK = re.compile(r"^(?P<fence>```+)(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?P<verb>\w+)\b[^.:]*?`(?P<name>[\w./-]+)`:$")
"""Matches the end of the sentence before a block, from its verb on."""
PLACE = re.compile(r"in place of `([^`]+)`")
OPTION = re.compile(r"""^:([\w-]+): ["']?(.*?)["']?$""", re.MULTILINE)
ADDRESS = re.compile(r"0x[0-9a-f]+")
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
STATUS = "echo $?"


class WrongTutorialError(AssertionError):
    """A reader who follows the page sees something else than the page says."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, and what the sentence before it says of it."""

    kind: str
    body: str
    verb: str
    file: str
    place: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that a reader uses."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        kind, body = found["kind"].strip(), found["body"]
        if kind == "{toctree}":
            continue
        sentence = text[: found.start()].rstrip().rpartition("\n\n")[2].replace("\n", " ").rpartition(". ")[2]
        said = FILE.search(sentence)
        if said is None and kind != "console":
            raise WrongTutorialError(f"{page.name}: nothing says what this block is for:\n{body}")
        if kind.startswith("{literalinclude}"):
            body = _included(page.parent / kind.partition("} ")[2], dict(OPTION.findall(body)))
        named = (said["verb"], said["name"]) if said and kind != "console" else ("", "")
        place = PLACE.search(sentence)
        yield Block(kind, body, *named, place[1] if place else "")


def _included(path: Path, options: dict[str, str]) -> str:
    """The lines that Sphinx shows for a ``literalinclude``."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if "start-at" not in options:
        return "".join(lines)
    first = next(at for at, line in enumerate(lines) if options["start-at"] in line)
    end = options.get("end-at") or options["end-before"]
    last = next(at for at, line in enumerate(lines) if at >= first and end in line)
    return "".join(lines[first : last + ("end-at" in options)])


def follow(page: Path, folder: Path) -> int:
    """Do in `folder` what the page says, and return the number of commands that were run.

    Raises
    ------
    WrongTutorialError
        If a command prints something else than the page shows, or ends with another status.
    """
    count = 0
    for block in blocks(page):
        path = folder / block.file
        if block.kind == "console":
            count += _typed(block.body, folder)
        elif block.kind == "diff":
            path.write_text(_changed(path.read_text(encoding="utf-8"), block.body), encoding="utf-8")
        elif block.place:
            text = _put(path.read_text(encoding="utf-8"), block.body, block.place)
            path.write_text(text, encoding="utf-8")
        else:
            before = path.read_text(encoding="utf-8") if block.verb == "Add" else ""
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(before + block.body, encoding="utf-8")
    return count


def _changed(text: str, change: str) -> str:
    """The text after a change; the old lines have to be in it once."""
    lines = change.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
    if text.count(old) != 1:
        raise WrongTutorialError(f"these lines are {text.count(old)} times in the file, and not once:\n{old}")
    return text.replace(old, new)


def _put(text: str, body: str, place: str) -> str:
    """The text with `body` for the one line that has `place` in it."""
    found = [line for line in text.splitlines(keepends=True) if place in line]
    if len(found) != 1:
        raise WrongTutorialError(f"{len(found)} lines have {place!r}, and one is needed")
    return text.replace(found[0], body)


def _typed(body: str, folder: Path) -> int:
    """Run the commands of a block, one after the other, and compare what they print."""
    commands = COMMAND.findall(body)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"}
    status = 0
    for number, (command, expected) in enumerate(commands):
        ended = subprocess.run(
            ["bash", "-c", f"(exit {status}); {command}"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        status = ended.returncode
        shown = number + 1 < len(commands) and commands[number + 1][0] == STATUS
        if not _alike(expected, ended.stdout) or (status and not shown):
            raise WrongTutorialError(
                f"$ {command}\nended with status {status} and printed\n{ended.stdout}\nThe page shows\n{expected}"
            )
    return len(commands)


def _alike(expected: str, printed: str) -> bool:
    """Whether an output is the expected one."""
    lines = (ADDRESS.sub("0x", line).rstrip() for line in expected.splitlines())
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in lines)
    seen = "".join(f"{ADDRESS.sub('0x', line).rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, seen) is not None
