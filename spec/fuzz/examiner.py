"""Examines a finding: makes its program short, confirms it, and looks whether it says something about the target."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .finding import EngineError, Finding, HeapStep, kind_of
from .jobs import Isolated
from .loops import folded, program_as_json
from .mask import NEEDED, NO_MASK, Mask
from .outcome import FROM_OUTSIDE
from .shortening import DEATH_TRIES, HANG_TRIES, TRIES, SpentError, raised, shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jobs import Job, JobPlace
    from .outcome import Outcome
    from .report import Report
    from .shortening import Program

__all__ = ["LAST_SECONDS", "SHORTENING_SECONDS", "Examiner", "unrepeated"]

SHORTENING_SECONDS, LAST_SECONDS = 10.0, 5.0
"""The seconds after the end of the time in which what was found last may be shortened, and then be looked at again."""
_ARENA = (64, 4096)
"""Of so many bytes so many blocks are freed until an allocator that lends none of them again counts as an arena."""
_SHORTENING_SHARE = 1 / 5
"""The most of the time that one finding is shortened, and looked at when it is short."""
_LOOKS_SHARE = 1 / 5
"""The part of this that is kept for the looks at what is short."""
_HEAPS = (1, 2, 3)
"""The heaps, by their seeds, with which a program has to show its finding."""
_SLOW, _SLOW_AT_LEAST = 10, 2
"""What hangs is repeated with so many times its processor time, or with less if that takes too much of the run."""
_QUICK_HANG, _QUICKEST_HANG = 0.5, 0.2
"""The limit of a call in seconds while a hang is shortened, and what it may come down to if there is little time."""
_LAST_BUSY = 4
"""At the last look at a hang it need not work for its whole limit, of which a busy machine gives it a part."""
_SHORT = 10
"""So many steps and loops are short enough."""
_LAST = 200
"""The number of steps that are kept of a finding that did not repeat."""
_DEATHS = ("A22-no-crash", "A23-no-hang")


class Examiner:
    """Asks about the findings of one run, whose time begins now; the report gets what is to be noted."""

    def __init__(  # noqa: PLR0913 -- what a run is made of
        self,
        place: JobPlace,
        report: Report,
        seconds: float,
        show: Callable[..., None],
        *,
        fresh: bool,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._place, self._report, self._seconds, self._show, self._fresh = place, report, seconds, show, fresh
        self.skipped: Mask = Mask.of(report.wanted.skip)  # what the user left unjudged
        self.rounds: tuple[Job, Mask] = {}, NO_MASK  # the last job of rounds
        self._asked_for_arena = False
        self._unpreloaded = ""  # why a library that is meant for it cannot be preloaded
        self._since = 0
        self._clock = clock
        self.until: float = clock() + seconds  # the end of the time of the run
        self._over = self.until + SHORTENING_SECONDS + LAST_SECONDS  # the end of all
        self._shorten_until = self._look_until = self.until

    def ask(self, job: Job, mask: Mask, until: float | None = None, place: JobPlace | None = None) -> Outcome:
        """The outcome of a job, which ends at this time; if none is said, `LAST_SECONDS` after the time of the run."""
        place = self._place if place is None else place
        self._since = place.journal.moved()[0]
        whole = max((self.until + LAST_SECONDS if until is None else until) - self._clock(), 0.0)
        all_have = {"promises": self._report.wanted.promises, "seed": self._report.wanted.seed, "mask": mask.as_json()}
        return place.perform({**job, **all_have, "whole": whole})

    def count_steps(self) -> int:
        """The steps of the present job until now."""
        program, steps = self._place.journal.moved()
        return steps if program != self._since else 0

    def _begin(self, requirement: str) -> None:
        """Begin the time of one finding: its tries end so early that what is short can be looked at in the rest."""
        share = self._seconds * _SHORTENING_SHARE
        self._look_until = min(self._clock() + share, self._over)
        # In a try a hang is short, and at the last look it takes its whole time.
        last = (
            self._report.wanted.hang + share * _LOOKS_SHARE / 2
            if requirement == "A23-no-hang"
            else share * _LOOKS_SHARE
        )
        self._shorten_until = min(self._look_until - last, self.until + SHORTENING_SECONDS)

    def is_of_loading(self, finding: Finding, mask: Mask) -> bool:
        """Whether a library that is meant for preloading shows a finding only because it was not preloaded.

        Then all that follows is done with the library preloaded; if it cannot be, it is bound to its own malloc.
        """
        place = self._place
        if not (self._report.preload and isinstance(place, Isolated) and finding.program):
            return False
        shown = self._unpreloaded or self._shown_by(finding, mask, self._report.preload)
        if isinstance(shown, str):
            self._unpreloaded, place.deep = shown, True
            shown = self._shown_by(finding, mask, "") is True
        if shown:
            place.deep = False
            place.preload("")  # so it is quicker
            return False
        why, self._report.preload = self._unpreloaded, ""
        how = f"could not be preloaded ({why}), and was bound to itself" if why else "was preloaded"
        self.note(f"it defines malloc, so it {how}: only beside another malloc it showed {finding.message}")
        return True

    def _shown_by(self, finding: Finding, mask: Mask, library: str) -> bool | str:
        """Whether a finding shows again, with this library preloaded; or why it cannot be."""
        place = self._place
        if not isinstance(place, Isolated):
            return True
        place.preload(library)
        try:
            opened = self.ask({"job": "describe"}, NO_MASK, self._over)
            if opened.described is None:
                return opened.finding.message if opened.finding else "it took too long"
            if library and opened.described["preload"]:
                return "the loader has ignored it"
            again = self.ask(_program_job(finding.program), mask, self._over)
        except EngineError as error:
            return str(error)
        return again.finding is not None and again.finding.requirement == finding.requirement

    def examined(self, finding: Finding, outcome: Outcome, mask: Mask) -> Finding | None:
        """A finding with its shortest program; None, with a note, if it says nothing about the target."""
        if finding.requirement == "A23-no-hang" and finding.program:
            return self._looked_at_slowly(finding, outcome, mask)
        return self._looked_at(finding, outcome, mask)

    def _looked_at_slowly(self, hang: Finding, outcome: Outcome, mask: Mask) -> Finding | None:
        """What seems to hang, or what its steps show when they have more time; None if they then come to their end."""
        reached = self._place.journal.calls()
        again = self.ask(_program_job(hang.program) | {"busy": self._busy}, mask, self._over)
        if again.stood:  # or there was no time to see its end
            return self._looked_at(hang, outcome, mask)
        # The program of the native driver has all that its process has done.
        if not again.failed and hang.generator == "fast":
            again = self._taken_when_old(outcome)
            # On a busy machine its time may be over while it is still in the same call.
            if again.stood and (again.finding or self._place.journal.calls() == reached):
                return unrepeated(replace(hang, message=f"{hang.message}; only after the rounds before it"))
        if again.finding is None or again.stood:
            self.note(f"slow: {hang.message}; alone, and with more time, it came to its end")
            return None
        if again.finding.requirement in self._report.wanted.skip:
            return unrepeated(hang)
        shown = replace(again.finding, generator=hang.generator, operations=hang.operations)
        return self._looked_at(shown, again, mask)

    def _looked_at(self, finding: Finding, outcome: Outcome, mask: Mask) -> Finding | None:
        """As `examined`, for what is known not to be only slow."""
        self._begin(finding.requirement)
        short = self._as_arena(finding, mask) or self._shrink(finding, outcome, mask)
        if short is None:
            outside = "its steps, taken again, did not show it, so something outside has ended the process"
            self.note_failure(EngineError(f"{finding.message}; {outside}"))
            return None
        if short.generator == "native" and not short.repeats and short.requirement not in _DEATHS:
            once = "the native driver saw this once, and its steps, taken again, did not show it"
            self.note(f"{once}: {short.requirement}: {short.message}")
            return None
        confirmed = self._confirmed(short, mask)
        if confirmed.is_arena:
            self._report.expect_no_reuse()
        return confirmed

    def note(self, note: str) -> None:
        """Put a note into the report, once."""
        if note not in self._report.notes:
            self._report.notes.append(note)

    def note_failure(self, error: Exception) -> None:
        """Put what ended a part of the run into the report, once."""
        if str(error) not in self._report.errors:
            self._report.errors.append(str(error))

    def _confirmed(self, finding: Finding, mask: Mask) -> Finding:
        """The finding with a program that shows it with another heap too, or that says that it does not.

        Steps that are as small as possible may show a bug only by where their blocks happen to lie; larger ones need no
        luck.
        """
        by_time = finding.requirement in {"A23-no-hang", "A27-survives-fork"}
        if by_time or not (isinstance(self._place, Isolated) and finding.repeats and finding.program):
            return finding
        tried = False
        with self._place.elsewhere() as elsewhere:
            for program in [finding.program, *raised(finding.program)]:
                look = program, finding.requirement, mask, self._look_until
                shown = [self._repeat(*look, place=elsewhere, heap=heap) for heap in _HEAPS]
                if shown[0] is not None and None not in shown:
                    return replace(finding, program=program, message=shown[0].message)
                if self._clock() >= self._look_until:
                    break  # and nobody knows what this program would have shown
                tried = True
        return replace(finding, elsewhere=not tried)

    def _not_without(self, finding: Finding) -> str:
        """What a crash that does not repeat needs: each kind of step without which the same rounds do not crash."""
        job, mask = self.rounds
        if finding.requirement != "A22-no-crash" or finding.generator != "fast" or not job:
            return ""
        needed: list[str] = []
        for kind in sorted({kind_of(step) for step in finding.program} - NEEDED):
            left = self._shorten_until - self._clock()
            if left <= 0:
                break
            without = mask | Mask(without=frozenset({kind}))
            outcome = self.ask(job | {"seconds": left}, without, self._look_until)
            if not outcome.failed and outcome.seconds < left:
                needed.append(kind)
        return f"; not without {' and '.join(needed)}" if needed else ""

    def _taken_when_old(self, outcome: Outcome) -> Outcome:
        """What the last rounds come to, taken again, with a round more if how many they are depends on the seconds."""
        job, mask = self.rounds
        until = min(self._clock() + 2 * (outcome.seconds + self._busy), self._over)
        return self.ask(job | {"busy": self._busy, "rounds": outcome.rounds + 1}, mask, until)

    @property
    def _busy(self) -> float:
        """The processor time after which a call is not only slow: ten times its limit, or a part of the run."""
        hang = self._report.wanted.hang
        return min(_SLOW * hang, max(_SLOW_AT_LEAST * hang, self._seconds * _SHORTENING_SHARE))

    def _as_arena(self, finding: Finding, mask: Mask) -> Finding | None:
        """What seems to leak as what it is, an arena; None if it is none, or if that was asked before."""
        if finding.requirement != "A16-no-leaks" or self._asked_for_arena:
            return None
        self._asked_for_arena = True
        arena = self._repeat((HeapStep("reuse", _ARENA),), finding.requirement, mask, self._look_until)
        return arena and replace(finding, message=arena.message, program=arena.program, shrunk=True)

    def _shrink(self, finding: Finding, outcome: Outcome, mask: Mask) -> Finding | None:
        """The finding with the shortest program; None if it is not one, because something outside ended the process."""
        begun = self._place.journal.moved()[0]
        count_programs = lambda: self._place.journal.moved()[0] - begun  # noqa: E731 -- one of a few lines is a riddle
        self._show(f"shortening {finding.requirement.partition('-')[0]}", 0, TRIES, count_programs)
        finding = replace(finding, after=tuple(sorted(mask.unjudged - self.skipped.unjudged - {finding.requirement})))
        for last in dict.fromkeys((outcome.last, 0)):
            program = finding.program[last:]
            short = self._shorten(finding.requirement, program, mask)
            if short is None:
                continue
            again = short.program, finding.requirement, self.skipped, self._look_until
            plain = self._repeat(*again) if finding.after else short
            after = () if plain is not None else finding.after
            return replace(finding, message=(plain or short).message, program=short.program, shrunk=True, after=after)
        return self._judge_unseen(finding, outcome)

    def _judge_unseen(self, finding: Finding, outcome: Outcome) -> Finding | None:
        """A finding that was not seen again, unless something outside has ended the process."""
        if self._clock() >= self._shorten_until:
            return finding  # there was no time to look
        if finding.requirement == "A23-no-hang" and finding.program:
            return finding  # it was seen again, because it is not slow
        if outcome.death is not None and outcome.death.detail in FROM_OUTSIDE:
            return None
        message = finding.message + self._not_without(finding)
        return replace(unrepeated(finding), message=message)

    def _shorten(self, requirement: str, program: Program, mask: Mask) -> Finding | None:
        """The shortest program that breaks a requirement; None if it does not do so again."""
        left = self._shorten_until - self._clock()
        if left > 0 and self._fresh and requirement not in _DEATHS:
            job: Job = {"job": "shorten", "requirement": requirement, "program": _as_data(program), "seconds": left}
            short = self.ask(job, mask, self._look_until).finding
            # If it shows only after the programs before it, or they hinder, it is made short in processes of their own.
            if short is not None and self._repeat(short.program, requirement, mask, self._look_until) is not None:
                if len(folded(short.program)) <= _SHORT:
                    return short
                program = short.program
        hangs = requirement == "A23-no-hang"
        each = max((self._shorten_until - self._clock()) / HANG_TRIES, _QUICKEST_HANG)
        quick = min(self._report.wanted.hang, _QUICK_HANG, each) if hangs else None

        def fails(shorter: Program) -> bool:
            if self._clock() >= self._shorten_until:
                raise SpentError
            return self._repeat(shorter, requirement, mask, self._shorten_until, hang=quick) is not None

        shortest = shortened(program, fails, HANG_TRIES if hangs else DEATH_TRIES, self._place.journal.calls)
        return self._repeat(shortest, requirement, mask, self._look_until)

    def _repeat(  # noqa: PLR0913 -- the options of a look
        self,
        program: Program,
        requirement: str,
        mask: Mask,
        until: float,
        *,
        hang: float | None = None,
        place: JobPlace | None = None,
        heap: int = 0,
    ) -> Finding | None:
        """The finding of a program in a process of its own, if it breaks the same requirement until then."""
        left, limit = until - self._clock(), hang or self._report.wanted.hang
        if left <= (limit if requirement == "A23-no-hang" else 0):
            return None
        job = _program_job(program) | {"seconds": left, "hang": limit, "heap": heap}
        if hang is None and requirement == "A23-no-hang":
            job["busy"] = limit / _LAST_BUSY
        finding = self.ask(job, mask, until, place).finding
        # Without the frees at its end.
        return replace(finding, program=program) if finding and finding.requirement == requirement else None


def unrepeated(finding: Finding) -> Finding:
    """The finding as one that was not seen again, with its last steps."""
    return replace(finding, program=finding.program[-_LAST:], repeats=False)


def _program_job(program: Program) -> Job:
    return {"job": "program", "program": program_as_json(program)}


def _as_data(program: Program) -> list[object]:
    return [step.as_json() for step in program]
