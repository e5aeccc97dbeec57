"""Several blobs under test, driven call by call and inspected in full after each call.

After every call the driver compares with the oracle: whether the call was refused, the allocator calls with their
sizes, the shapes and capacities, which memories are shared, their heads, and the bytes of every fresh side.  It does
this for the blobs that took part, and for all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode

from ..engine.reproducer import Reproducer
from ..engine.run import Run, blaming, check_maker
from .cells import cell_of
from .claims import blob_requirements_for
from .elements import USUAL, decoded, encoded, numbers, shown
from .inspection import BlobInspection, besides_extents
from .oracle import (
    ACCESSORS,
    ADOPTIONS,
    Blame,
    BlobStates,
    ExportingBlob,
    Other,
    failing_calls,
    foresee,
    number_of,
    write_of,
)
from .steps import REFUSED, UNCHANGED, BlobOutcome, name_of

if TYPE_CHECKING:
    from ..engine.call_log import CallLog
    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .cells import BlobCell
    from .oracle import Foreseen, Shape
    from .steps import BlobCall, Check

__all__ = ["BlobDriver"]

_ELEMENTS = (("syncedmem.spec.blob.elements", ("encoded", "numbers", "pour")),)
"""The names that reproducers about blobs may use."""


_AFTER_A_REFUSAL = Blame("B56-unchanged", "B56-unchanged", "B56-unchanged")

_SHAPING = ("reshape", "reshape_like", "copy_from", "from_proto")
"""The calls that may give a shape."""


class BlobDriver:
    """Blobs of one type that live at the same time, and the calls on them.

    Parameters
    ----------
    subject : Subject
        Makes blobs.
    dtype : str
        The element type of all blobs.

    Attributes
    ----------
    run : Run
    inspection : BlobInspection
    visited : list of BlobCell
        The cells that were taken, for coverage.
    steps : int
        The number of calls that were compared with the oracle.
    """

    def __init__(self, subject: Subject, dtype: str = USUAL) -> None:
        self.subject: Subject = subject
        self.reproducer: Reproducer = Reproducer(subject, _ELEMENTS)
        self.run: Run = Run(self.reproducer, blob_requirements_for(subject))
        self.log: CallLog = self.run.log
        self.inspection: BlobInspection = BlobInspection(
            self.run, BlobStates(dtype, subject.device is not None, Mode.GPU)
        )
        self.visited: list[BlobCell] = []
        self.steps: int = 0
        self._extents_at = 0

    @property
    def states(self) -> BlobStates:
        """The expected state."""
        return self.inspection.states

    def blob(self, n: int) -> Any:
        """The blob with this number."""
        return self.inspection.blob(n)

    def blame(self, error: Exception) -> Violation:
        """The violation for an error that the kit met outside a call."""
        return self.run.violation("B21-accessors", f"inspecting the blobs raised {type(error).__name__}: {error}")

    # --- making blobs

    @blaming
    def make(self, shape: Shape | None, n: int | None = None) -> None:
        """Make another blob, with the next number or with this one; this must allocate nothing.

        Raises
        ------
        Violation
        """
        n = len(self.states.blobs) if n is None else n
        name, given = name_of(n), "" if shape is None else f"{shape!r}, "
        text = f"subject.make({given}dtype={self.states.dtype!r}, host=host, device=device)"
        start = len(self.log.calls)
        error = self.reproducer.call(text, self.states.mode, keep=name).raised
        made, shapes = self.reproducer.names.get(name), () if shape is None else (shape,)
        check_maker(self.subject, made, error, ACCESSORS, shapes, ("dtype", "host", "device"))
        known = "B01-empty" if shape is None else "B02-lazy"
        self.run.require(error is None, known, f"making a blob raised {type(error).__name__}: {error}")
        self.inspection.states = self.states.make(n, shape)
        seen = self.log.calls[start:]
        others = seen if shape is None else besides_extents(seen, len(shape))
        self.run.require(not others, "B02-lazy", "making a blob called its allocators")
        self.run.require(not seen, "B67-shape-lazy", "making a blob allocated memory for its extents")
        shaped, grown = "B01-empty" if shape is None else "B03-shape", "B06-growth-renews"
        self.inspection.compare_blobs({n}, Blame(shaped, shaped), sizes=grown)
        self.inspection.compare_memories({n}, Blame("B02-lazy", "B02-lazy"))

    # --- calls

    @blaming
    def perform(self, step: BlobCall) -> None:
        """Make one call, and compare everything with the oracle.

        Raises
        ------
        Violation
        """
        self.steps += 1
        foreseen = foresee(self.states, step, self.steps)
        if step.about:
            foreseen = foreseen._replace(blame=Blame(step.about, step.about))
        if step.call == "mode":
            self.inspection.states = foreseen.after
            return
        if cell := cell_of(self.states, step):
            self.visited.append(cell)
        start, live = len(self.log.calls), set(self.log.live)
        raised, value = self.reproducer.call(
            self._text(step), self.states.mode, keep="view" if write_of(step.call) else ""
        )
        name, blame = f"{name_of(step.blob)}.{step.call}", foreseen.blame
        if foreseen.refused:
            self._must_raise(raised, foreseen.refused, f"{name} was not refused")
            self.run.require(set(self.log.live) == live, "B56-unchanged", f"{name} was refused, and changed memory")
            blame = _AFTER_A_REFUSAL
        else:
            message = f"{name} raised {type(raised).__name__}: {raised}"
            self.run.require(raised is None, blame.accepted or blame.conduct, message)
        if self.run.sees_actions:
            self.inspection.compare_calls(foreseen, self.log.calls[start:], blame.conduct, self._axes(step, foreseen))
        self.inspection.states = foreseen.after
        self.inspection.compare_blobs(step.changed, blame)
        if raised is None and self.run.sees_bytes:
            self.inspection.compare_value(step, foreseen, value)
        self.inspection.compare_memories(step.changed, blame)
        if raised is None:
            self._write(step)

    @staticmethod
    def _axes(step: BlobCall, foreseen: Foreseen) -> int:
        """The number of axes that a call gives to its blob; -1 if it gives no shape."""
        return len(foreseen.after.blobs[step.blob].shape) if step.call in _SHAPING else -1

    @blaming
    def perform_failing(self, step: BlobCall, k: int) -> None:
        """Make a call whose k-th allocator call fails, and then make it again; the numbers must be right.

        The failed call may have brought a side up to date, so heads are not compared.

        Parameters
        ----------
        step : BlobCall
        k : int

        Raises
        ------
        Violation
        """
        if k > failing_calls(self.states, step):
            self.perform(step)
            return
        self.steps += 1
        numbers, shapes = self.inspection.fresh_numbers(), [(it.shape, it.count) for it in self.states.blobs.values()]
        text, known = self._text(step), "B57-failure-keeps-numbers"
        raised = self.reproducer.call(text, self.states.mode, within=f"log.moves.armed({k})").raised
        if not self.log.moves.blown:
            self.run.require(raised is None, known, f"nothing failed, but it raised {raised!r}")
        else:
            self._must_raise(raised, known, "a failed allocator call was not reported")
            found = [(tuple(self.blob(n).shape), self.blob(n).count) for n in self.states.blobs]
            self.run.require(found == shapes, known, f"it failed, and then the shapes are {found}, expected {shapes}")
            for key, expected in numbers.items():
                self.inspection.compare_fresh(key, expected, known)
            again = self.reproducer.call(text, self.states.mode).raised
            self.run.require(again is None, known, f"the same call again raised {again!r}")
        self.inspection.states = foresee(self.states, step, self.steps).after
        for key, expected in self.inspection.fresh_numbers().items():
            self.inspection.compare_fresh(key, expected, known)

    @blaming
    def check(self, step: Check) -> None:
        """Make a call that has an expectation of its own, and check that it calls no allocator.

        Raises
        ------
        Violation
        """
        known, text, expected = step
        start = len(self.log.calls)
        raised, value = self.reproducer.call(text, self.states.mode)
        if expected is REFUSED:
            self._must_raise(raised, known, "the last call was not refused")
            if not self.run.safe:
                return  # Caffe may bring a side up to date before it refuses, as in data_at (blob.hpp:191-194)
            known = "B56-unchanged"
        else:
            self.run.require(raised is None, known, f"it raised {type(raised).__name__}: {raised}")
            right = expected is UNCHANGED or value == expected
            self.run.require(right, known, f"it is {value!r}, expected {expected!r}")
        self.run.require(len(self.log.calls) == start, known, "it called its allocators, and must not")
        if isinstance(expected, BlobOutcome):
            everyone, blame = set(self.states.blobs), Blame(known, known)
            self.inspection.compare_blobs(everyone, blame)
            self.inspection.compare_memories(everyone, blame)

    @blaming
    def prepare(self, statement: str) -> None:
        """Run a statement of the reproducer whose names later steps use."""
        self.reproducer.run(statement)

    def compare_extents(self, *, again: bool = False) -> None:
        """Check the extents of the first blob on the device; from then on it has more memory, for these extents.

        Parameters
        ----------
        again : bool
            The extents are the same as last time, and must not be sent again.

        Raises
        ------
        Violation
        """
        self.inspection.has_extents, known, wanted = True, "B17-gpu-shape", self.states.blobs[0].shape
        raised, value = self.reproducer.call("blob.gpu_shape()", self.states.mode)
        self.run.require(raised is None, known, f"it raised {type(raised).__name__}: {raised}")
        if not self.run.sees_bytes:
            return
        try:
            there = decoded(shown(value), "int32")
        except Exception as error:
            raise self.run.violation(known, f"not 32-bit integers: {type(error).__name__}: {error}") from error
        self.run.require(there == wanted, known, f"the device has {there}, expected {wanted}")
        sent = len(self.log.calls) > self._extents_at
        self.run.require(not (again and sent), "B61-shape-once", "the same extents were sent again")
        self._extents_at = len(self.log.calls)

    @blaming
    def finish(self) -> None:
        """Drop all blobs, and check that nothing is left.

        Raises
        ------
        Violation
        """
        if self.subject.program is not None:
            for n in self.states.blobs:
                self.blob(n).drop()
        if self.states.blobs:
            self.reproducer.run(f"del {', '.join(map(name_of, self.states.blobs))}")
        self.reproducer.names.pop("view", None)
        self.inspection.states = BlobStates(self.states.dtype, self.states.has_device, self.states.mode)
        self.inspection.has_extents = False
        self.inspection.compare_live()

    # --- making a call

    def _must_raise(self, raised: BaseException | None, requirement: str, message: str) -> None:
        """Report a call that did not raise; if it raised, the reproducer must expect the error and go on."""
        self.run.require(raised is not None, requirement, message)
        if raised is None:
            return
        for error in filter(None, (raised, raised.__cause__, raised.__context__)):
            error.__traceback__ = None  # it refers to blobs, and the kit checks that they can be dropped
        self.reproducer.expect(raised)

    def _text(self, step: BlobCall) -> str:
        if step.text:
            return step.text
        given = [self._hand_in(step)] if step.call in ADOPTIONS else [self._said(it) for it in step.arguments]
        given += [f"{option}={value!r}" for option, value in step.options]
        return f"{name_of(step.blob)}.{step.call}({', '.join(given)})"

    def _said(self, argument: object) -> str:
        return name_of(argument.blob) if isinstance(argument, Other) else repr(argument)

    def _hand_in(self, step: BlobCall) -> str:
        """A buffer of the caller, by its name in the reproducer, or a view of the blob that exports it."""
        given, (_, side) = step.arguments[0], ADOPTIONS[step.call]
        if isinstance(given, ExportingBlob):
            return f"{name_of(given.blob)}.mutable_{side}_{given.part}()"
        if not given:
            return "None"
        count = self.states.blobs[step.blob].count
        name, content = self.reproducer.fresh("buffer"), f"numbers({self.steps}, {count}, {self.states.dtype!r})"
        if side == "cpu":
            self.reproducer.run(f"{name} = bytearray({content})")
        elif self.subject.device is None:
            self.reproducer.run(f"{name} = object()")
        else:
            self.reproducer.run(f"{name} = subject.device.empty({len(number_of(self.states, step.blob, self.steps))})")
            self.reproducer.run(f"put(subject, {name}, {content})")
        return name

    def _write(self, step: BlobCall) -> None:
        """Write numbers through the view that the step returned for writing: the step's numbers, or others."""
        writes = write_of(step.call)
        if writes is None:
            return
        count, dtype, values = self.states.blobs[step.blob].count, self.states.dtype, step.values
        content = encoded(values, dtype) if values else numbers(self.steps, count, dtype)
        if content and self.run.sees_bytes:
            said = f"encoded({values!r}" if values else f"numbers({self.steps}, {count}"
            self.reproducer.run(f"pour(view, {said}, {dtype!r}))")
            self.inspection.states = self.states.wrote(step.blob, *writes, content)
        self.inspection.compare_memories({step.blob}, Blame("B21-accessors", "B22-elements"))
