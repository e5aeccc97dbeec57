"""The kit put to the test: every planted fault must be caught, for the reason it was planted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..kit import check_conformance, suite_names
from ..subject import Bench
from .registry import FAULTS, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Kill", "kill_table", "run_fault"]


class Kill(NamedTuple):
    """What became of one fault.

    Attributes
    ----------
    fault : Fault
    caught : dict
        The suites that caught it, each with the requirement it named.
    """

    fault: Fault
    caught: dict[str, str]

    @property
    def killed(self) -> bool:
        """Whether some suite caught it, and named the requirement it was planted for."""
        return self.fault.requirement in self.caught.values()


def run_fault(fault: Fault, bench: Bench, *, steps: int = 300, suites: Iterable[str] | None = None) -> Kill:
    """Put one wrong memory to every suite.

    Parameters
    ----------
    fault : Fault
    bench : Bench
        Its maker is replaced by the fault's.
    steps : int
        Generated steps.
    suites : iterable of str, optional
        Only these.
    """
    wrong = Bench(fault.name, fault.make, bench.host, bench.device, bench.profile, bench.elsewhere, bench.check_device)
    verdict = check_conformance(wrong, steps=steps, suites=suites or suite_names(wrong))
    return Kill(fault, {suite.name: suite.violation.requirement for suite in verdict.suites if suite.violation})


def kill_table(device: Callable[[], Bench], no_device: Callable[[], Bench], *, steps: int = 300) -> Iterator[Kill]:
    """Every planted fault, each on a bench of its own of the kind it shows on."""
    for fault in FAULTS.values():
        bench = device() if fault.bench == "device" else no_device()
        yield run_fault(fault, bench, steps=steps)
