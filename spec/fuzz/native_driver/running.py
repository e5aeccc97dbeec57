"""Runs the native driver, each campaign in a process of its own, and reads its journal."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ...engine.supervisor import Command, Death, Limits
from ...engine.tail import Tail
from ..driver import ATTEMPTS
from ..finding import Finding, Step, TargetError
from ..isolation import environment
from ..native import LibraryAddress
from ..oracle import OF_CONTENTS
from .building import built, compiled_driver
from .sanitizers import OPTIONS, STATUS, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..capabilities import Capabilities
    from ..jobs import Answer

__all__ = ["NativeDriver"]

# What follows is as in driver.c.
_ABIS = ("malloc", "nep49", "torch", "cupy")
_ZERO_SIZES = ("any", "null", "unique", "error")
_OPERATIONS: tuple[str, ...] = ("", "allocate", "free", "check", "calloc", "resize", "request_too_much", "check")
_HEADER = struct.Struct("<6Q24s952s")
_COUNTS = struct.Struct("<9Q56x")
_RECORD = struct.Struct("<IIQQ")
_RUNNING, _DONE, _WRONG, _HANG, _UNUSABLE = range(5)
_NO_BEGIN = ("2", "125")
"""The exit statuses of a driver that has no journal, or no memory."""
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")

_STEPS, _ROUNDS = 200_000, 64
"""The most of a process with one thread, whose steps are all kept."""
_SHARED_ROUNDS = 1 << 20
_PROCESSES = 8
"""The number of processes among which the steps of several threads are divided."""
_CAPACITY, _SHARED_CAPACITY = 1 << 18, 1 << 14
"""The most steps that are kept of a single thread, and of each of several."""
_BEYOND, _BEYOND_COUNTING = 1 << 24, 1 << 56
"""The steps that a thread may take beyond those that are asked for; no number of a header comes to the other."""
_GRACE = 5.0
"""The seconds that the driver has for its own start and end."""


class NativeDriver:
    """Runs the native driver on one target.

    Parameters
    ----------
    library : LibraryAddress
    capabilities : Capabilities
        The promises of the target.
    hang : float
        The seconds after which a call that has not returned counts as a hang.
    sanitizer : str
        The sanitizer that the library is compiled with; nothing for none.

    Raises
    ------
    TargetError
        If the driver cannot be compiled.
    """

    def __init__(self, library: LibraryAddress, capabilities: Capabilities, hang: float, sanitizer: str = "") -> None:
        self._library = library
        self._capabilities = capabilities
        self._hang = hang
        self._sanitizer = sanitizer
        self._program = compiled_driver(sanitizer)
        self._run: _Run | None = None

    @classmethod
    def of(
        cls, target: str, capabilities: Capabilities, hang: float, symbols: Sequence[str] | None = None
    ) -> Self | None:
        """The driver for a target; None if the target is no library with one of the conventions that the driver knows.

        Parameters
        ----------
        target : str
        capabilities, hang
            As for the class.
        symbols : sequence of str or None
            The symbols by position, empty if the driver cannot call them; None for those that the target names.

        Raises
        ------
        TargetError
            If the driver, or the target with its sanitizer, cannot be compiled.
        """
        found = built(target)
        library = LibraryAddress.parse(found.sanitized)
        if library is not None and symbols is not None:
            library = library._replace(symbols=tuple(symbols))
        if library is None or library.abi not in _ABIS or not library.symbols:
            if found.sanitizer:
                raise TargetError(f"{target}: a sanitizer needs functions in C, of {', '.join(_ABIS)}")
            return None
        return cls(library, capabilities, hang, found.sanitizer)

    def answers(self, *, seed: int, steps: int, seconds: float, threads: int = 1) -> Iterator[Answer]:
        """Take random steps; there is an answer for each process, like that of a job.

        Parameters
        ----------
        seed : int
        steps : int
            The number of steps of all threads and processes together.
        seconds : float
            The most time for all processes together.
        threads : int

        Raises
        ------
        TargetError
            If the driver cannot open the target.
        """
        deadline = time.perf_counter() + seconds
        done = number = 0
        while done < steps and (left := deadline - time.perf_counter()) > 0:
            most = min(_STEPS, steps - done) if threads == 1 else min(-(-steps // _PROCESSES), steps - done)
            run = _Run(threads, _CAPACITY if threads == 1 else _SHARED_CAPACITY, most)
            self._run = run
            with run:
                options = {
                    "seed": seed % (1 << 64),
                    "first_round": number * (_ROUNDS if threads == 1 else _SHARED_ROUNDS),
                    "steps": most,
                    "milliseconds": int(left * 1000) + 1,
                    # Every second process of several threads is interrupted; some calls of the system notice it.
                    "interrupts": int(threads > 1 and not self._sanitizer and number % 2 == 0),
                }
                answer = self._answer(run, self._ended(run, options, left))
                answer["rounds_of"] = {"first_round": options["first_round"], "count": answer["operations"]}
            done += answer["operations"]
            number += 1
            yield answer

    def taken(self) -> int:
        """The steps of the present process until now; from any thread."""
        return 0 if self._run is None else sum(it.steps for it in self._run.counts())

    def alone(self, steps: int) -> float:
        """Calls a second of the target in a simple loop, without the driver's own work."""
        with _Run(1, 1, steps) as run:
            self._ended(run, {"steps": steps, "bare": 1, "milliseconds": 1 << 20}, 1 << 10)
            return steps / (run.header().busy / 1e9)

    def _ended(self, run: _Run, options: dict[str, int], seconds: float) -> Death | None:
        """Run the driver to its end; how it ended without saying that it is done."""
        record = self._capabilities
        readable = {None: 2, False: 0, True: 1}[record.host_readable]
        options = {
            **options,
            "threads": run.threads,
            "capacity": run.capacity,
            "rounds": _ROUNDS if run.threads == 1 else _SHARED_ROUNDS,
            "hang": int(self._hang * 1000),
            "attempts": ATTEMPTS,
            "abi": _ABIS.index(self._library.abi),
            "alignment": record.alignment,
            "zero_size": _ZERO_SIZES.index(record.zero_size),
            "zeroed": int(record.zeroed),
            "null": int("null" in record.out_of_memory),
            "readable": readable,
        }
        texts = {
            "journal": run.path,
            "library": self._library.path,
            "symbols": ",".join(self._library.symbols),
        }
        arguments = [f"{name}={value}" for name, value in {**options, **texts}.items()]
        command = Command(
            [*_fixed_addresses(self._sanitizer), str(self._program), *arguments],
            {**environment(), **OPTIONS},
            Limits(seconds=seconds + self._hang + _GRACE),
            errors=run.output.end,
            group=True,
        )
        with command:
            try:
                answer = command.ask("")
            except BaseException:
                command.process.kill()
                raise
        return answer if isinstance(answer, Death) else None

    def _answer(self, run: _Run, death: Death | None) -> Answer:
        header, counts = run.header(), run.counts()
        if header.state == _UNUSABLE:
            raise TargetError(f"the native driver cannot open the target: {header.message}")
        if death is not None and header.state == _RUNNING and self._is_not_its_fault(death, header.rounds):
            raise TargetError(f"the native driver {death.how}")
        finding = self._finding(run, header, death)
        served, freed = sum(it.served for it in counts), sum(it.freed for it in counts)
        operations = sum(it.steps for it in counts)
        if finding is not None:
            finding["operations"] = operations
        checked = {
            "A01-distinct-pointers": served,
            "A02-no-overlap": served,
            "A03-aligned": served if self._capabilities.alignment > 1 else 0,
            "A04-contents-kept": freed,
            "A05-served": served,
            "A06-out-of-memory": sum(it.refused for it in counts),
            "A07-free-accepts": freed,
            "A09-zero-size": sum(it.nothings for it in counts),
            "A13-zeroed": sum(it.zeroed for it in counts) + (served if self._capabilities.zeroed else 0),
            "A14-resize-keeps": sum(it.resized for it in counts),
            "A20-threads": operations if run.threads > 1 else 0,
        }
        return {
            "operations": operations,
            "seconds": header.nanoseconds / 1e9,
            "busy": header.busy / 1e9,
            "rounds": header.rounds,
            "spoilt": not run.sound,
            "checked": {
                name: times for name, times in checked.items() if times and (header.readable or name not in OF_CONTENTS)
            },
            "unread": None,
            "last": run.last_round() if run.threads == 1 else 0,
            "finding": finding,
        }

    @staticmethod
    def _is_not_its_fault(death: Death, rounds: int) -> bool:
        """Whether the driver itself could not begin, or something outside has ended it."""
        return death.detail in _FROM_OUTSIDE or (death.detail in _NO_BEGIN and not rounds)

    def _finding(self, run: _Run, header: _Header, death: Death | None) -> dict[str, Any] | None:
        """The finding of a process, as data; None if nothing was wrong."""
        summary, report = trimmed(run.said()) if self._sanitizer else ("", "")
        calls = run.last_calls()
        if header.state == _WRONG:
            requirement, message = header.requirement, header.message
        elif header.state == _HANG or (death is not None and death.kind == "hang"):
            which = min(header.finder, run.threads - 1)
            message = f"{self._hang:g} seconds after {calls[which]} nothing had happened"
            message += f"; the last calls were {', '.join(calls)}" if run.threads > 1 else ""
            requirement = "A23-no-hang"
        elif header.state == _DONE or death is None:  # a driver that is done may be gone before it is asked
            return None
        elif summary and death.detail == str(STATUS):
            requirement, message = "A22-no-crash", f"{summary}; the last calls were {', '.join(calls)}"
        else:
            how = death.detail if death.kind == "crash" else f"exit status {death.detail}"
            lines = run.said().strip().splitlines()
            said = f" ({lines[-1][:200]})" if lines else ""
            requirement, message = "A22-no-crash", f"the process ended with {how} in {', '.join(calls)}{said}"
        if run.threads > 1:
            found = Finding("A20-threads", f"{requirement}: {message}", (), "threads", repeats=False, report=report)
        else:
            found = Finding(requirement, message, run.program(), "native", report=report)
        return found.as_json()


def _fixed_addresses(sanitizer: str) -> list[str]:
    """What runs a program without random addresses, where it is there: TSan does not start with too random ones."""
    found = shutil.which("setarch") if sanitizer == "thread" else None
    return [] if found is None else [found, "-R"]


class _Header(NamedTuple):
    """The header of a journal."""

    state: int
    finder: int
    rounds: int
    nanoseconds: int
    busy: int
    readable: int
    requirement: str
    message: str


class _Counts(NamedTuple):
    """What a thread has done."""

    steps: int
    round_start: int
    served: int
    freed: int
    zeroed: int
    resized: int
    refused: int
    nothings: int
    done: int


class _Run:
    """The journal and the output of one process of the driver.

    Parameters
    ----------
    threads : int
    capacity : int
        The most steps that are kept of each thread, a power of two.
    most : int
        The steps that are asked for.

    Attributes
    ----------
    path : str
        The file of the journal.
    output : Tail
        The last that the driver and the target write.
    """

    def __init__(self, threads: int, capacity: int, most: int) -> None:
        self._most = most + _BEYOND
        self.threads = threads
        self.capacity = capacity
        self._folder = tempfile.TemporaryDirectory(prefix="syncedmem-")
        self.path: str = os.fspath(Path(self._folder.name) / "journal")
        self._records = _HEADER.size + threads * _COUNTS.size
        with Path(self.path).open("w+b") as file:
            file.truncate(self._records + threads * capacity * _RECORD.size)
            self._memory = mmap.mmap(file.fileno(), 0)
        self.output: Tail = Tail()
        self.output.begin()

    def header(self) -> _Header:
        """The header."""
        *numbers, requirement, message = _HEADER.unpack_from(self._memory)
        numbers = [it if it < _BEYOND_COUNTING else 0 for it in numbers]
        return _Header._make((*numbers, _text(requirement), _text(message)))

    def counts(self) -> list[_Counts]:
        """What each thread has done; nothing if the target has written there."""
        return [it if self._is_sound(it) else _Counts._make([0] * len(it)) for it in self._counts()]

    def _counts(self) -> list[_Counts]:
        end = _HEADER.size + self.threads * _COUNTS.size
        return [_Counts._make(it) for it in _COUNTS.iter_unpack(self._memory[_HEADER.size : end])]

    def _is_sound(self, counts: _Counts) -> bool:
        return counts.steps <= self._most and max(counts) <= max(counts.steps, 1)

    @property
    def sound(self) -> bool:
        """Whether what the threads have done can be as it says."""
        return all(map(self._is_sound, self._counts()))

    def program(self) -> tuple[Step, ...]:
        """The steps of a single thread; the last ones if there were more than are kept."""
        steps = self.counts()[0].steps
        return tuple(self._step(0, at) for at in range(max(steps - self.capacity, 0), steps))

    def last_round(self) -> int:
        """The position in the program where the last round begins."""
        steps, start, *_ = self.counts()[0]
        return max(start - max(steps - self.capacity, 0), 0)

    def last_calls(self) -> list[str]:
        """The last call of each thread."""
        found: list[str] = []
        for thread, counts in enumerate(self.counts()):
            call = str(self._step(thread, counts.steps - 1)) if counts.steps else "its start"
            found.append(f"{call} of thread {thread}" if self.threads > 1 else call)
        return found

    def _step(self, thread: int, at: int) -> Step:
        place = self._records + (thread * self.capacity + at % self.capacity) * _RECORD.size
        record: tuple[int, int, int, int] = _RECORD.unpack_from(self._memory, place)
        operation, number, size, _ = record
        name = _OPERATIONS[operation] if 0 < operation < len(_OPERATIONS) else "check"  # the target has written there
        numbers = {
            "allocate": (number, size, 0, 0),
            "free": (number, 0),
            "check": (number,),
            "request_too_much": (size,),
        }
        return Step(name, numbers.get(name, (number, size)))

    def said(self) -> str:
        """What the driver and the target have written."""
        return self.output.text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        self.output.__exit__()
        self._folder.cleanup()


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")
