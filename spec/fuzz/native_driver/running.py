"""Runs the native driver, each campaign in a process of its own, and reads its journal."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...engine.supervisor import Death
from ...requirements import REQUIREMENTS
from ..driver import ATTEMPTS
from ..finding import Finding, TargetError
from ..journal import RUNNING, UNUSABLE, WRONG, Header, Journal
from ..mask import DAMAGED
from ..native import ABIS, LibraryAddress
from ..oracle import OF_CONTENTS
from ..outcome import FROM_OUTSIDE, Outcome, finding_of
from ..rounds import TOO_MUCH
from .building import compiled_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..capabilities import Capabilities
    from ..jobs import Isolated

__all__ = ["NativeDriver"]

_NO_BEGIN = ("2", "125")
"""The exit statuses of a driver that has no journal, or no memory."""

_OF_EACH_BLOCK = ("A01-distinct-pointers", "A02-no-overlap", "A03-aligned", "A05-served")
"""What is judged of each block that is served."""

_STEPS, _ROUNDS = 200_000, 64
"""The most of a process with one thread, whose steps are all kept."""
_SHARED_ROUNDS = 1 << 20
_PROCESSES = 8
"""The number of processes among which the steps of several threads are divided."""
_CAPACITY, _SHARED_CAPACITY = 1 << 18, 1 << 14
"""The most steps that are kept of a single thread, and of each of several."""
_GRACE = 5.0
"""The seconds that the driver has for its own start and end."""
_PATIENCE = 3
"""On a busy machine, one of several threads may get no processor for some time."""


class NativeDriver:
    """Runs the native driver on one target."""

    def __init__(
        self,
        place: Isolated,
        library: LibraryAddress,
        capabilities: Capabilities,
        calls: Mapping[str, str],
        parts: Mapping[str, str],
    ) -> None:
        self._place, self._library, self._capabilities = place, library, capabilities
        self._calls, self._make = calls, parts.get("make", "")
        self._program = compiled_driver()
        self._journal: Journal | None = None

    @classmethod
    def of(cls, place: Isolated, capabilities: Capabilities, parts: Mapping[str, str]) -> Self | None:
        """The driver for the target of a place; None if that is no library with functions that the driver can call.

        The parts are those of the library, each with its symbol.
        """
        library = LibraryAddress.parse(place.target)
        calls = {} if library is None else ABIS[library.abi].native_calls(parts)
        return cls(place, library, capabilities, calls, parts) if library is not None and calls else None

    def outcomes(
        self, *, seed: int, steps: int, seconds: float, threads: int = 1, unjudged: Callable[[], Iterable[str]] = tuple
    ) -> Iterator[Outcome]:
        """Take random steps; there is an outcome for each process, like that of a job.

        The steps are those of all threads and processes together, and the seconds those of all processes.  What is
        left unjudged is asked for before each process.
        """
        deadline = time.perf_counter() + seconds
        done = number = 0
        while done < steps and (left := deadline - time.perf_counter()) > 0:
            most = min(_STEPS, steps - done) if threads == 1 else min(-(-steps // _PROCESSES), steps - done)
            rounds, capacity = (_ROUNDS, _CAPACITY) if threads == 1 else (_SHARED_ROUNDS, _SHARED_CAPACITY)
            with (
                tempfile.TemporaryDirectory(prefix="syncedmem-") as folder,
                Journal(Path(folder) / "journal", capacity, threads, most) as journal,
            ):
                self._journal = journal
                left_out = set(unjudged())
                # What is served for more than there can be is not freed, so it is asked for only if it is judged.
                sizes = () if "A06-out-of-memory" in left_out else TOO_MUCH
                options = {
                    **self._capabilities.as_numbers(),
                    "readable": {None: 2, False: 0, True: 1}[self._capabilities.host_readable],
                    "seed": seed % (1 << 64),
                    "first_round": number * rounds,
                    "rounds": rounds,
                    "steps": most,
                    "threads": threads,
                    "capacity": capacity,
                    "milliseconds": int(left * 1000) + 1,
                    # Every second process of several threads is interrupted; some calls of the system notice it.
                    "interrupts": int(threads > 1 and number % 2 == 0),
                    "attempts": ATTEMPTS,
                    "unjudged": ",".join(left_out - DAMAGED),
                    "too_much": ",".join(str(size) for size in sizes if size <= ABIS[self._library.abi].most),
                    "journal": journal.path,
                    "library": self._library.path,
                    "symbols": ",".join(self._calls),
                    "calls": ",".join(self._calls.values()),
                    "make": self._make,
                    "deep": int(self._place.deep),
                }
                outcome = self._outcome(journal, self._run(journal, options, left))
            done += outcome.operations
            number += 1
            yield outcome

    def taken(self) -> int:
        """The steps of the present process until now; from any thread."""
        return 0 if self._journal is None else sum(count.steps for count in self._journal.counts())

    def _run(self, journal: Journal, options: dict[str, Any], seconds: float) -> Death:
        """Run the driver; how it ended."""
        arguments = [str(self._program), *(f"{name}={value}" for name, value in options.items())]
        patience = self._place.hang if journal.threads == 1 else _PATIENCE * self._place.hang
        job = {"command": arguments, "hang": patience, "whole": seconds + patience + _GRACE}
        return Death(**self._place.answer(job, journal)["death"])

    def _outcome(self, journal: Journal, death: Death) -> Outcome:
        header, counts = journal.header(), journal.counts()
        if header.state == UNUSABLE:
            raise TargetError(f"the native driver cannot open the target: {header.message}")
        # It could not begin, or something outside has ended it.
        if header.state == RUNNING and (
            death.detail in FROM_OUTSIDE or (death.detail in _NO_BEGIN and not header.rounds)
        ):
            raise TargetError(f"the native driver {death.how}")
        served, freed = sum(count.served for count in counts), sum(count.freed for count in counts)
        operations = sum(count.steps for count in counts)
        checked = dict.fromkeys(_OF_EACH_BLOCK, served) | {
            "A04-contents-kept": freed,
            "A06-out-of-memory": sum(count.refused for count in counts),
            "A07-free-accepts": freed,
            "A09-zero-size": sum(count.nothings for count in counts),
            "A13-zeroed": sum(count.zeroed for count in counts) + (served if self._capabilities.zeroed else 0),
            "A14-resize-keeps": sum(count.resized for count in counts),
            "A20-threads": operations if journal.threads > 1 else 0,
        }
        return Outcome(
            _finding(journal, header, death),
            None if header.state != RUNNING else death,
            operations,
            header.rounds,
            header.nanoseconds / 1e9,
            header.busy / 1e9,
            journal.last_round() if journal.threads == 1 else 0,
            Counter(
                {
                    name: times
                    for name, times in checked.items()
                    if times
                    and self._capabilities.makes(REQUIREMENTS[name].needs)
                    and (header.readable or name not in OF_CONTENTS)
                }
            ),
            spoilt=not journal.sound,
        )


def _finding(journal: Journal, header: Header, death: Death) -> Finding | None:
    """The finding of a process; None if nothing was wrong."""
    if header.state == WRONG:
        return Finding(header.requirement, header.message, journal.steps() if journal.threads == 1 else ())
    return finding_of(death, journal) if header.state == RUNNING else None
