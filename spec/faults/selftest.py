"""The kit put to the test: every planted fault must be caught, for the reason it was planted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..kit import check_conformance, suite_names
from .registry import FAULTS, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..subject import Bench

__all__ = ["QUICKEST_FIRST", "Kill", "kill_table", "run_fault"]


QUICKEST_FIRST = ("cells", "contracts", "flights", "stumbles", "tour", "counters", "hsi", "sizes", "failures", "walks")
"""The suites by what they cost for each fault that they catch first."""


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
    """Put one wrong memory to the suites until one names what is wrong, the quickest first.

    Parameters
    ----------
    fault : Fault
    bench : Bench
        Its maker is replaced by the fault's.
    steps : int
        Generated steps.
    suites : iterable of str, optional
        Only these.
    thorough : bool
        Put it to all of them, to see which others would have caught it.
    """
    wrong = replace(bench, name=fault.name, make=fault.make)
    offered = set(suite_names(wrong) if suites is None else suites)
    kill = Kill(fault, {})
    for name in (name for name in QUICKEST_FIRST if name in offered):
        if kill.killed and not thorough:
            break
        violation = check_conformance(wrong, steps=steps, suites=[name]).suites[0].violation
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
