"""What is tested, and by what: from a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.report import Tolerance
from ..memory.claims import requirements_for
from ..memory.policy import without_mute
from ..record.compare import Comparison
from ..record.world import World
from ..requirements import HARMLESS
from ..subjects.performer import performer_of
from .trial import Bench

if TYPE_CHECKING:
    from ..engine.subject import Subject

__all__ = ["absent_of", "bench_of", "world_of"]


def world_of(subject: Subject) -> World:
    """A world without memories, of the calls that are judged."""
    machine = without_mute(subject.machine, subject.policy)
    return World.of(machine, subject.policy, safe=subject.profile == "safe")


def absent_of(world: World) -> frozenset[str]:
    """The sides that this build lacks."""
    return frozenset() if world.policy is None else world.policy.absent


def bench_of(subject: Subject, tolerance: Tolerance | None = None) -> Bench:
    """A subject, judged by every requirement that it can be judged by."""
    performer = performer_of(subject)
    world, judged, tolerated = world_of(subject), requirements_for(subject), tolerance or Tolerance()
    comparison = Comparison(
        world.machine,
        judged,
        level=subject.level,
        safe=world.safe,
        hosts={side for side in subject.machine.sides if subject.is_host(side)},
        alone=bool(absent_of(world)),
        defers=performer.defers,
        excused=lambda requirement: requirement in HARMLESS and tolerated.excuses(requirement),
    )
    return Bench(performer, world, comparison, judged)
