"""A scenario: blobs of one type, and the steps done to them.  Here scenarios are run, and shortened.

Enumerated tests, rules and generated tests are all scenarios, so every failure is shrunk and shown in the same
way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode

from ..engine.shrinking import shortest
from .driver import BlobDriver
from .elements import USUAL
from .oracle import BlobStates, foresee
from .steps import BlobCall, Check, Extents, FailingStep, Make, Prepare, name_of

if TYPE_CHECKING:
    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .oracle import Shape
    from .steps import BlobStep

__all__ = ["Scenario", "run_scenario", "shortened"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Blobs and the steps done to them.

    Attributes
    ----------
    shapes : tuple
        The shape of each blob; None for a blob without a shape.
    steps : tuple of BlobStep
    dtype : str
    """

    shapes: tuple[Shape | None, ...]
    steps: tuple[BlobStep, ...]
    dtype: str = USUAL

    @property
    def whole(self) -> tuple[BlobStep, ...]:
        """All steps, with those that make the blobs."""
        return (*(Make(n, shape) for n, shape in enumerate(self.shapes)), *self.steps)


def run_scenario(subject: Subject, scenario: Scenario) -> BlobDriver:
    """Run a scenario, drop all blobs, and check that nothing is left.

    Raises
    ------
    Violation
    """
    return _run(subject, scenario.whole, scenario.dtype)


def _run(subject: Subject, steps: tuple[BlobStep, ...], dtype: str) -> BlobDriver:
    subject.mark()
    driver = BlobDriver(subject, dtype)
    for step in steps:
        step.take(driver)
    driver.finish()
    return driver


# --- shortening


def shortened(subject: Subject, scenario: Scenario, violation: Violation) -> Violation:
    """The violation of the shortest scenario that breaks the same requirement.

    Blobs keep their numbers.  A step with an expectation of its own is right only where it stands: a shorter scenario
    counts only if each of them has the context that it has in the whole one.
    """
    whole = scenario.whole
    contexts = _contexts(subject, whole)

    def run(steps: tuple[BlobStep, ...]) -> None:
        if _is_complete(steps) and _contexts(subject, steps) <= contexts:
            _run(subject, steps, scenario.dtype)

    def simpler(step: BlobStep) -> tuple[BlobStep, ...]:
        return (step.step,) if isinstance(step, FailingStep) else ()

    return shortest(whole, violation, run, simpler=simpler, program=subject.program)


def _is_complete(steps: tuple[BlobStep, ...]) -> bool:
    """Whether each step has the blobs that it uses."""
    there = set[int]()
    for step in steps:
        if isinstance(step, Make):
            there.add(step.blob)
        elif not step.blobs <= there:
            return False
    return True


def _contexts(subject: Subject, steps: tuple[BlobStep, ...]) -> set[Any]:
    """The steps with texts of their own, each with its context: the state of its blobs, and the names in its text."""
    if not any(isinstance(step, Check | Prepare | Extents) for step in steps):
        return set()
    found, named = set[Any](), dict[str, Any]()
    states = BlobStates(USUAL, subject.device is not None, Mode.GPU)
    for number, step in enumerate(steps):
        call = step.step if isinstance(step, FailingStep) else step
        if isinstance(call, Make):
            states = states.make(call.blob, call.shape)
        elif isinstance(call, Extents):
            found.add((call, states.outline(call.blobs), named.get(_EXTENTS) if call.again else None))
            named[_EXTENTS] = states.outline(call.blobs)
        elif isinstance(call, BlobCall):
            if call.text:
                found.add((call, _names(call.text, named)))
            states = foresee(states, call, number).after
            if call.values:
                named[name_of(call.blob)] = (named.get(name_of(call.blob)), call.values)
        elif isinstance(call, Check | Prepare):
            found.add((call, states.outline(call.blobs), _names(call.text, named)))
            if isinstance(call, Prepare):
                named[_WORD.findall(call.text)[0]] = (call, _names(call.text, named))
    return found


def _names(text: str, named: dict[str, Any]) -> tuple[Any, ...]:
    """The names that a text uses, each with the steps that made it what it is."""
    return tuple(named.get(word) for word in _WORD.findall(_ASSIGNMENT.sub("", text)))


_WORD, _ASSIGNMENT = re.compile(r"\w+"), re.compile(r"^\w+ = ")
_EXTENTS = "gpu_shape"
