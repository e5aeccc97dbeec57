"""`LoggingAllocator`: what is in the log, and a log that fails."""

from __future__ import annotations

import csv
import io
import json
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from subjects import SIZE

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError
from syncedmem.runtime import CPUDeviceAllocator, LimitingAllocator, LoggingAllocator
from syncedmem.runtime.allocators.pointers import address_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_of_json_lines(tmp_path: Path) -> None:
    """There is a line for each call, also for a request that finds no room, and for one whose size is no size."""
    path = tmp_path / "log.jsonl"
    with LoggingAllocator(LimitingAllocator(CPUDeviceAllocator(), 100), path) as log:
        block = log.allocate(60)
        for size in (50, object()):
            with pytest.raises((AllocationError, InvalidArgumentError)):
                log.allocate(size)  # type: ignore[arg-type] # the point of the test
        log.release(block)
        log.release(log.allocate(0))
    late = log.allocate(5)
    log.release(late)
    log.close()

    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert ["allocate", "allocate failure", "allocate failure", "free"] == [line["action"] for line in lines]
    assert [f"{address_of(block):#x}", "0x0", "0x0", f"{address_of(block):#x}"] == [line["pointer"] for line in lines]
    assert [60, 50, 60] == [line["size"] for line in lines if isinstance(line["size"], int)]
    assert {threading.get_ident()} == {line["thread"] for line in lines}
    assert {"0x0"} == {line["stream"] for line in lines}
    assert all(line["time"][10] == "T" for line in lines)


def test_a_release_that_fails_is_in_the_log() -> None:
    """The line of the attempt comes first: otherwise another thread could log the address before it."""
    file = io.StringIO()
    log = LoggingAllocator(CPUDeviceAllocator(), file)
    for foreign in (np.zeros(3, np.uint8), 7):
        with pytest.raises(InvalidPointerError):
            log.release(foreign)
    lines: list[dict[str, Any]] = [json.loads(line) for line in file.getvalue().splitlines()]

    assert ["free", "free failure"] * 2 == [line["action"] for line in lines]
    assert ([3, 3, 0, 0], "0x0", None) == ([line["size"] for line in lines], lines[-1]["pointer"], log.failure)


def test_a_log_in_the_columns_of_rmm() -> None:
    """A file that was given open stays open."""
    file = io.StringIO()
    log = LoggingAllocator(CPUDeviceAllocator(), file, csv=True)
    block = log.allocate(60)
    log.release(block)
    log.close()
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))

    assert file.getvalue().startswith("Thread,Time,Action,Pointer,Size,Stream\n")
    shown = f"{address_of(block):#x}"
    assert [("allocate", shown, "60", "0x0"), ("free", shown, "60", "0x0")] == [tuple(row.values())[2:] for row in rows]
    assert all(len(row["Time"]) == len("12:34:56.123456") and int(row["Thread"]) for row in rows)


class Full(io.StringIO):
    """A file that cannot be written: its disk is full, or an interrupt comes."""

    error: BaseException = OSError("no space left")

    def write(self, text: str) -> int:
        del text
        raise self.error


def test_a_log_that_fails_loses_no_memory() -> None:
    """There is one warning, and calls continue."""
    upstream = CPUDeviceAllocator()
    log = LoggingAllocator(upstream, Full())
    with pytest.warns(RuntimeWarning, match="the log of cpu:0 is not complete: OSError: no space left") as warned:
        block = log.allocate(SIZE)
        log.release(block)
    assert (1, 0, True) == (len(warned), upstream.live_blocks, isinstance(log.failure, OSError))
    with warnings.catch_warnings(action="error"):
        again = LoggingAllocator(upstream, Full())
        block = again.allocate(SIZE)
        assert (1, "no space left") == (upstream.live_blocks, str(again.failure))
        again.release(block)


def test_an_interrupt_while_the_log_is_written_loses_no_memory() -> None:
    upstream, file = CPUDeviceAllocator(), Full()
    file.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        LoggingAllocator(upstream, file).allocate(SIZE)

    assert 0 == upstream.live_blocks


def test_a_log_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        LoggingAllocator(CPUDeviceAllocator(), tmp_path / "no" / "log")
