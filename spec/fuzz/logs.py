"""Logs of allocations as programs: the CSV of RMM's logging adaptor, and the JSON lines of CuPy's ``DebugPrintHook``.

A log shows what a real program asked for.  Taken on another target, each step is judged like any other.  Pieces of a
log with small changes are programs too, so a log is a corpus.
"""

from __future__ import annotations

import csv
import json
import random
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model.files import check_regular, refused

from .finding import HeapStep, TargetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["programs_of", "read_log"]

_PART = 50_000
"""The steps of one program of a long log; the journal has room for many more."""
_VARIATIONS, _SHORTEST, _LONGEST = 16, 50, 2000
_CHANGED = 0.05
_RMM = ("Action", "Pointer", "Size")
_MOST_SIZE = (1 << 64) - 1


class _Event(NamedTuple):
    """What a line of a log says: memory with this key was allocated, or freed if the size is None."""

    key: object
    size: int | None
    stream: object = None


def programs_of(path: Path, seed: int, *, streams: bool) -> list[tuple[HeapStep, ...]]:
    """The programs of a log: all of it, in parts if it is long; and one of varied pieces of it, one after the other."""
    whole = read_log(path)
    if not streams:
        whole = [HeapStep(step.operation, (*step.numbers[:-1], 0)) for step in whole]
    rng = random.Random(f"{seed}:log")  # noqa: S311 -- replayable
    pieces = (_varied(whole, rng, first=number * len(whole)) for number in range(_VARIATIONS))
    return [*_parts(whole), tuple(chain.from_iterable(pieces))] if whole else []


def read_log(path: Path) -> list[HeapStep]:
    """The allocations and frees of a log, in its order; streams are numbered as they appear, from 1."""
    try:
        check_regular(str(path), path.stat().st_mode)
        with path.open(encoding="utf-8", newline="") as file:
            return list(_steps(path, file))
    except (OSError, UnicodeDecodeError) as error:
        raise refused(str(path), error) from error


def _events(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, _Event]]:
    """The events of a log, each with the number of its line; the first line shows who wrote it."""
    numbered: Iterator[tuple[int, str]] = (
        (number, text) for number, line in enumerate(lines, 1) if (text := line.strip())
    )
    number, first = next(numbered, (1, ""))
    columns = [column.strip() for column in first.split(",")]
    read: Callable[[str], _Event | None] = partial(_event_of_rmm, columns)
    if first.startswith("{"):
        numbered, read = chain([(number, first)], numbered), _event_of_cupy
    elif not set(_RMM) <= set(columns):
        raise TargetError(
            f"{path} is no log of RMM, whose first line names the columns {', '.join(_RMM)}, and none of CuPy, whose "
            f"lines are JSON: line {number} is {first!r:.60}"
        )
    for number, line in numbered:
        try:
            event = read(line)
        except ValueError as error:
            raise TargetError(f"{path}, line {number}: {error}") from None
        if event is not None:
            yield number, event


def _event_of_rmm(columns: list[str], line: str) -> _Event | None:
    values = next(csv.reader([line]))
    if len(values) != len(columns):
        raise ValueError(f"{len(values)} values for {len(columns)} columns: {line!r:.60}")
    row = {name: value.strip() for name, value in zip(columns, values, strict=True)}
    action, pointer = row["Action"], row["Pointer"]
    if action not in ("allocate", "free", "deallocate", "allocate failure"):
        raise ValueError(f"{action!r:.60} is no action of RMM")
    key, size = 0 if pointer == "(nil)" else _number(pointer), _number(row["Size"])
    return None if "failure" in action else _Event(key, size if action == "allocate" else None, row.get("Stream"))


def _event_of_cupy(line: str) -> _Event | None:
    row: Any = None
    with suppress(ValueError, RecursionError):
        row = json.loads(line)
    if not hasattr(row, "get") or "hook" not in row:
        raise ValueError(f"no JSON object of CuPy's DebugPrintHook: {line!r:.60}")
    hook, key = row["hook"], str(row.get("pmem_id"))
    if hook == "malloc":
        size, pointer = _number(row.get("size")), _number(row.get("mem_ptr"))
        return _Event(key, size) if pointer or not size else None  # a null pointer for a refused request
    if hook not in {"free", "alloc"}:
        raise ValueError(f"{hook!r:.60} is no hook of CuPy that a log has")
    return _Event(key, None) if hook == "free" else None  # an alloc is of the pool, from the device


def _number(value: object) -> int:
    """A size or an address: decimal, or hexadecimal after 0x."""
    text = str(value)
    with suppress(ValueError):
        number = int(text, 16 if text[:2].lower() == "0x" else 10)
        if 0 <= number <= _MOST_SIZE:
            return number
    raise ValueError(f"{text!r:.60} is no size and no address")


def _steps(path: Path, lines: Iterable[str]) -> Iterator[HeapStep]:
    live: dict[object, list[tuple[int, int, int]]] = {}
    """Of each key the block, its size and its line; blocks of zero bytes may share one address."""
    streams: dict[object, int] = {}
    for block, (line, event) in enumerate(_events(path, lines)):
        same = live.setdefault(event.key, [])
        stream = streams.setdefault(event.stream, len(streams) + 1)
        if event.size is not None:
            if same and (event.size or same[-1][1]):
                what = f"this memory is in use since line {same[-1][2]}, and was not freed"
                raise TargetError(f"{path}, line {line}: {what}")
            same.append((block, event.size, line))
            yield HeapStep("allocate", (block, event.size, 0, stream))
        elif same:
            yield HeapStep("free", (same.pop()[0], stream))
        else:
            raise TargetError(f"{path}, line {line}: memory is freed that no line before allocates")


def _parts(whole: list[HeapStep]) -> Iterator[tuple[HeapStep, ...]]:
    """The steps in parts; a part begins with the blocks that live at that point."""
    live: dict[int, HeapStep] = {}
    for start in range(0, len(whole), _PART):
        part = whole[start : start + _PART]
        yield (*live.values(), *part)
        for step in part:
            if step.operation == "allocate":
                live[step.numbers[0]] = step
            else:
                live.pop(step.numbers[0])


def _varied(whole: list[HeapStep], rng: random.Random, first: int) -> list[HeapStep]:
    """A piece of a log in which some steps are left out and some sizes are changed; at its end all is freed.

    Its blocks are numbered from `first`, so that pieces can follow each other.
    """
    length = rng.randrange(_SHORTEST, _LONGEST)
    start = rng.randrange(max(len(whole) - length, 0) + 1)
    kept = (step for step in whole[start : start + length] if rng.random() >= _CHANGED)
    changed = [_resized(step, rng) if rng.random() < _CHANGED else step for step in kept]
    piece = [HeapStep(step.operation, (step.numbers[0] + first, *step.numbers[1:])) for step in changed]
    live = {step.numbers[0] for step in piece if step.operation == "allocate"}
    live -= {step.numbers[0] for step in piece if step.operation == "free"}
    return [*piece, *(HeapStep("free", (block, 0)) for block in sorted(live))]


def _resized(step: HeapStep, rng: random.Random) -> HeapStep:
    if step.operation != "allocate":
        return step
    block, size, *rest = step.numbers
    others = (size + 1, max(size - 1, 0), 1 << size.bit_length(), size // 2, 0)
    return HeapStep("allocate", (block, rng.choice(others), *rest))
