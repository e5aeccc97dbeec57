"""Several blobs under test, driven call by call and looked at in full after each.

After every call the driver compares with the oracle: whether it was refused, the allocator calls with their sizes, the
shapes and capacities, which memories are shared, their heads, and the bytes of every fresh side; of the blobs that
took part, and of all others.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from ..engine.finding import Violation
from .elements import USUAL, decoded, encoded, numbers, shown
from .excerpts import Enough, now
from .inspection import UNCHANGED, BlobInspection
from .oracle import Duty, World
from .steps import ADOPTIONS, BlobCall, Other, failing_calls, foresee, number_of, write_of
from .tables import cell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..engine.reproducer import Outcome
    from ..engine.subject import Subject
    from .oracle import Shape
    from .tables import Cell

__all__ = ["BlobDriver"]

P = ParamSpec("P")


def _blaming(act: Callable[Concatenate[BlobDriver, P], None], /) -> Callable[Concatenate[BlobDriver, P], None]:
    """Whatever a blob makes the kit stumble over is a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(driver: BlobDriver, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(driver, *args, **kwargs)
        except (Violation, Enough):
            raise
        except Exception as error:
            message = f"looking at the blobs raised {type(error).__name__}: {error}"
            raise driver.violation("B21-accessors", message) from error

    return blamed


class BlobDriver(BlobInspection):
    """Blobs of one type that live at the same time, and what is done to them.

    Parameters
    ----------
    subject : Subject
        Makes blobs.
    dtype : str
        Of all of them.

    Attributes
    ----------
    visited : list of Cell
        For counting coverage.
    """

    def __init__(self, subject: Subject, dtype: str = USUAL) -> None:
        super().__init__(subject, dtype)
        self.visited: list[Cell] = []
        self._number = 0
        self._actions = now()
        self._actions.begin_driver()

    @classmethod
    def of(cls, subject: Subject, *shapes: Shape | None, dtype: str = USUAL) -> BlobDriver:
        """A driver of blobs of these shapes.

        Raises
        ------
        Violation
        """
        driver = cls(subject, dtype)
        for shape in shapes:
            driver.make(shape)
        return driver

    def takes(self) -> bool:
        """Whether the next action of the rule that is run is to be taken; see `excerpts`."""
        return self._actions.take()

    @property
    def steps(self) -> int:
        """How many calls were compared with the oracle."""
        return self._number

    # --- making blobs

    @_blaming
    def make(self, shape: Shape | None) -> None:
        """Make another blob; nothing is allocated by that.

        Raises
        ------
        Violation
        """
        if not self.takes():
            return
        name, given = self.name(len(self.world.blobs)), "" if shape is None else f"{shape!r}, "
        text = f"subject.make({given}dtype={self.world.dtype!r}, host=host, device=device)"
        start = len(self.log.calls)
        error = self.reproducer.call(text, self.world.mode, keep=name).raised
        known = "B01-empty" if shape is None else "B02-lazy"
        self.require(error is None, known, f"making a blob raised {type(error).__name__}: {error}")
        self.world = self.world.make(shape)
        self.require(len(self.log.calls) == start, "B02-lazy", "making a blob called its allocators")
        shaped, grown = "B01-empty" if shape is None else "B03-shape", "B06-growth-renews"
        self._compare_blobs({len(self.world.blobs) - 1}, Duty(shaped, shaped), sizes=grown)
        self._compare_memories({len(self.world.blobs) - 1}, Duty("B02-lazy", "B02-lazy"))

    # --- doing

    @_blaming
    def perform(self, step: BlobCall, *, about: str = "", text: str = "", values: Sequence[float] = ()) -> None:
        """Make one call, and compare everything.

        Parameters
        ----------
        step : BlobCall
        about : str
            The requirement that all of it is for, where it is not the usual one.
        text : str
            How the reproducer is to say it, where that is not the usual way.
        values : sequence of float
            What to write through the view that the step hands out, in place of its own whole numbers.

        Raises
        ------
        Violation
        """
        if not self.takes():
            return
        self._number += 1
        foreseen = foresee(self.world, step, self._number)
        if about:
            foreseen = foreseen._replace(duty=Duty(about, about))
        if step.call == "mode":
            self.world = foreseen.after
            return
        if cell := cell_of(self.world, step):
            self.visited.append(cell)
        start, live = len(self.log.calls), set(self.log.live)
        raised, value = self._call(text or self._text(step), step)
        name, duty = f"{self.name(step.blob)}.{step.call}", foreseen.duty
        if foreseen.refused:
            self.must_raise(raised, foreseen.refused, f"{name} was not refused")
            self.require(set(self.log.live) == live, "B56-unchanged", f"{name} was refused, and changed memory")
            duty = UNCHANGED
        else:
            self.require(raised is None, duty.conduct, f"{name} raised {type(raised).__name__}: {raised}")
        self._compare_calls(foreseen, self.log.calls[start:], duty.conduct)
        self.world = foreseen.after
        self._compare_blobs(step.changed, duty)
        if raised is None:
            self._compare_value(step, foreseen, value)
        self._compare_memories(step.changed, duty)
        if raised is None:
            self._write(step, values)

    @_blaming
    def perform_failing(self, step: BlobCall, k: int, *, text: str = "") -> None:
        """Make one call whose k-th allocator call fails, and then again: the numbers must be what they would have been.

        A side may have been brought up to date before the call failed, so heads are not compared.

        Parameters
        ----------
        step : BlobCall
        k : int
        text : str
            How the reproducer has the call, if not by its arguments.

        Raises
        ------
        Violation
        """
        if k > failing_calls(self.world, step):
            self.perform(step, text=text)
            return
        if not self.takes():
            return
        self._number += 1
        numbers, shapes = self._fresh_numbers(), [(blob.shape, blob.count) for blob in self.world.blobs]
        text, known = text or self._text(step), "B57-failure-keeps-numbers"
        raised = self.reproducer.call(text, self.world.mode, within=f"log.moves.armed({k})").raised
        if not self.log.moves.blown:
            self.require(raised is None, known, f"nothing failed, and yet it raised {raised!r}")
        else:
            self.must_raise(raised, known, "a failed allocator call was not reported")
            found = [(tuple(self.blob(n).shape), self.blob(n).count) for n in range(len(shapes))]
            self.require(found == shapes, known, f"it failed, and the shapes are {found}, expected {shapes}")
            for key, expected in numbers.items():
                self._compare_side_by_side(key, expected, known)
            again = self.reproducer.call(text, self.world.mode).raised
            self.require(again is None, known, f"afterwards it raised {again!r}")
        self.world = foresee(self.world, step, self._number).after
        for key, expected in self._fresh_numbers().items():
            self._compare_side_by_side(key, expected, known)

    @_blaming
    def refused(self, requirement: str, *calls: str) -> None:
        """See that calls raise, call no allocator and change nothing.

        Parameters
        ----------
        requirement : str
            What one breaks that does not raise.
        *calls : str
            As the reproducer has them.

        Raises
        ------
        Violation
        """
        everyone = set(range(len(self.world.blobs)))
        for call in (it for it in calls if self.takes()):
            start = len(self.log.calls)
            raised = self.reproducer.call(call, self.world.mode).raised
            self.must_raise(raised, requirement, "the last call was not refused")
            self.require(len(self.log.calls) == start, "B56-unchanged", "it was refused, but it called allocators")
            self._compare_blobs(everyone, UNCHANGED)
            self._compare_memories(everyone, UNCHANGED)

    @_blaming
    def unchanged(self, requirement: str, call: str) -> None:
        """See that a call is taken, calls no allocator and changes nothing.

        Parameters
        ----------
        requirement : str
            What one breaks that does otherwise.
        call : str
            As the reproducer has it.

        Raises
        ------
        Violation
        """
        if not self.takes():
            return
        start, everyone = len(self.log.calls), set(range(len(self.world.blobs)))
        raised = self.reproducer.call(call, self.world.mode).raised
        self.require(raised is None, requirement, f"it raised {type(raised).__name__}: {raised}")
        asked = len(self.log.calls) - start
        self.require(not asked, requirement, "there was nothing to do, and yet it called its allocators")
        self._compare_blobs(everyone, Duty(requirement, requirement))
        self._compare_memories(everyone, Duty(requirement, requirement))

    @_blaming
    def shows(self, requirement: str, expression: str, expected: object) -> None:
        """See what an expression is, that it calls no allocator, and that it changes nothing.

        Raises
        ------
        Violation
        """
        if not self.takes():
            return
        start = len(self.log.calls)
        raised, value = self.reproducer.call(expression, self.world.mode)
        text = f"it raised {type(raised).__name__}: {raised}" if raised else f"it is {value!r}, expected {expected!r}"
        self.require(raised is None and value == expected, requirement, text)
        self.require(len(self.log.calls) == start, requirement, "looking called allocators")

    def prepare(self, *statements: str) -> None:
        """Have something at hand that later calls name."""
        if self.takes():
            for statement in statements:
                self.reproducer.run(statement)

    def compare_extents(self) -> None:
        """See which extents the first blob has on the device; from now on it has memory for them besides its own.

        Raises
        ------
        Violation
        """
        if not self.takes():
            return
        self._extents, known, wanted = True, "B17-gpu-shape", self.world.blobs[0].shape
        raised, value = self.reproducer.call("blob.gpu_shape()", self.world.mode)
        self.require(raised is None, known, f"it raised {type(raised).__name__}: {raised}")
        try:
            there = decoded(shown(value), "int32")
        except Exception as error:
            raise self.violation(known, f"these are no 32-bit integers: {type(error).__name__}: {error}") from error
        self.require(there == wanted, known, f"the device has {there}, expected {wanted}")

    @_blaming
    def finish(self) -> None:
        """Let go of all blobs, and look for what is left.

        Raises
        ------
        Violation
        """
        if self.world.blobs:
            self.reproducer.run(f"del {', '.join(map(self.name, range(len(self.world.blobs))))}")
        self.reproducer.names.pop("view", None)
        self.world = World(self.world.dtype, self.world.has_device, self.world.mode)
        self._extents = False
        self._compare_live()

    def ended(self) -> BlobDriver:
        """The driver itself, at its end; see `finish`."""
        self.finish()
        return self

    # --- making a call

    def _call(self, text: str, step: BlobCall) -> Outcome:
        return self.reproducer.call(text, self.world.mode, keep="view" if write_of(step.call) else "")

    def _text(self, step: BlobCall) -> str:
        given = [self._hand_in(step)] if step.call in ADOPTIONS else [self._said(it) for it in step.arguments]
        given += [f"{option}={value!r}" for option, value in step.options]
        return f"{self.name(step.blob)}.{step.call}({', '.join(given)})"

    def _said(self, argument: object) -> str:
        return self.name(argument.blob) if isinstance(argument, Other) else repr(argument)

    def _hand_in(self, step: BlobCall) -> str:
        """A buffer of the caller's own, by its name in the reproducer."""
        if not step.arguments[0]:
            return "None"
        count, (_, side) = self.world.blobs[step.blob].count, ADOPTIONS[step.call]
        name, content = self.reproducer.fresh("buffer"), f"numbers({self._number}, {count}, {self.world.dtype!r})"
        if side == "cpu":
            self.reproducer.run(f"{name} = bytearray({content})")
        elif self.subject.device is None:
            self.reproducer.run(f"{name} = object()")
        else:
            self.reproducer.run(f"{name} = subject.device.empty({len(number_of(self.world, step.blob, self._number))})")
            self.reproducer.run(f"put(subject, {name}, {content})")
        return name

    def _write(self, step: BlobCall, values: Sequence[float]) -> None:
        """Write numbers through the view that was handed out for it: this step's, or some others."""
        writes = write_of(step.call)
        if writes is None:
            return
        count, dtype = self.world.blobs[step.blob].count, self.world.dtype
        content = encoded(values, dtype) if values else numbers(self._number, count, dtype)
        if content:
            said = f"encoded({tuple(values)!r}" if values else f"numbers({self._number}, {count}"
            self.reproducer.run(f"pour(view, {said}, {dtype!r}))")
            self.world = self.world.wrote(step.blob, *writes, content)
        self._compare_memories({step.blob}, Duty("B21-accessors", "B22-elements"))
