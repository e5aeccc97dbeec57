"""The kit put to the test: every planted fault must be caught, for the reason it was planted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..blob import blob_suite_names, check_blobs
from ..memory.kit import check_conformance, suite_names
from ..requirements import REQUIREMENTS
from .memory import FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..engine.subject import Subject as Bench
    from .registry import Fault

__all__ = ["BLOBS_QUICKEST_FIRST", "QUICKEST_FIRST", "Kill", "kill_table", "quickest_first", "run_fault"]


QUICKEST_FIRST = ("cells", "contracts", "flights", "stumbles", "tour", "counters", "hsi", "sizes", "failures", "walks")
"""The suites by what they cost for each fault that they catch first."""

BLOBS_QUICKEST_FIRST = ("rules", "tables", "shapes", "types", "sequences", "failures", "walks")
"""The same for blobs."""


def quickest_first(fault: Fault) -> tuple[str, ...]:
    """The suites for a fault, by what they cost."""
    return BLOBS_QUICKEST_FIRST if _is_blob(fault) else QUICKEST_FIRST


def _is_blob(fault: Fault) -> bool:
    return REQUIREMENTS[fault.requirement].kind == "blob"


class Kill(NamedTuple):
    """What became of one fault.

    Attributes
    ----------
    fault : Fault
    caught : dict
        The suites that caught it, each with the requirement it named.
    missed : tuple of str
        The suites that saw nothing wrong.
    """

    fault: Fault
    caught: dict[str, str]
    missed: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether some suite caught it, and named the requirement it was planted for."""
        return self.fault.requirement in self.caught.values()


def run_fault(
    fault: Fault, bench: Bench, *, steps: int = 300, suites: Iterable[str] | None = None, thorough: bool = False
) -> Kill:
    """Put one wrong memory or blob to the suites until one names what is wrong, the quickest first.

    Parameters
    ----------
    fault : Fault
    bench : Bench
        Its maker is replaced by the fault's; of the kind that the fault shows on.
    steps : int
        Generated steps.
    suites : iterable of str, optional
        Only these.
    thorough : bool
        Put it to all of them, to see which others would have caught it.
    """
    wrong = replace(bench, name=fault.name, make=fault.make)
    check, names = (check_blobs, blob_suite_names) if _is_blob(fault) else (check_conformance, suite_names)
    offered = set(names(wrong) if suites is None else suites)
    kill = Kill(fault, {})
    for name in (name for name in quickest_first(fault) if name in offered):
        if kill.killed and not thorough:
            break
        violation = check(wrong, steps=steps, suites=[name]).suites[0].violation
        if violation is None:
            kill = kill._replace(missed=(*kill.missed, name))
        else:
            kill.caught[name] = violation.requirement
    return kill


def kill_table(device: Callable[[], Bench], no_device: Callable[[], Bench], *, steps: int = 300) -> Iterator[Kill]:
    """Every planted fault, each on a bench of its own of the kind it shows on."""
    for fault in FAULTS.values():
        bench = device() if fault.bench == "device" else no_device()
        yield run_fault(fault, bench, steps=steps, thorough=True)
