"""Findings, and the steps that lead to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

from syncedmem.model import SyncedMemoryError
from syncedmem.model.errors import shown

from ..engine.violation import Violation
from ..requirements import REQUIREMENTS

__all__ = [
    "BLOCKS_OF",
    "MOST_NUMBER",
    "MOST_STEPS",
    "NEVER_REUSES",
    "OPERATIONS",
    "TAKES",
    "EngineError",
    "Finding",
    "HeapStep",
    "TargetError",
    "allocated",
    "freed",
    "kind_of",
]

OPERATIONS: dict[str, tuple[str, ...]] = {
    "allocate": ("block", "size", "alignment", "stream"),
    "free": ("block", "stream"),
    "check": ("block",),
    "calloc": ("block", "size"),
    "resize": ("block", "size"),
    "copy": ("block", "source"),
    "copy_nothing": (),
    "free_again": ("block",),
    "free_foreign": (),
    "free_wrong_size": ("block", "size"),
    "request_too_much": ("size", "alignment"),
    "request_too_many": ("count", "size"),
    "resize_too_much": ("block", "size"),
    "compare": (),
    "cycle": ("size", "count", "how"),
    "fill": ("size",),
    "work": ("block", "stream"),
    "finish": ("stream",),
    "use_all": ("block",),
    "reset": (),
    "reuse": ("size", "count"),
    "free_null": (),
    "free_with_errno": ("size",),
    "resize_null": ("block", "size"),
    "resize_to_nothing": ("block",),
    "request_bad_alignment": ("alignment", "size"),
    "fork": ("count",),
}
"""The operations on an allocator, with the names of the numbers that each takes."""

_BLOCKS = ("block", "source")
BLOCKS_OF = {
    operation: tuple(at for at, name in enumerate(names) if name in _BLOCKS) for operation, names in OPERATIONS.items()
}
"""The positions of the blocks among the numbers of each operation."""

TAKES = ("allocate", "calloc", "resize_null")
"""The operations that make a new block."""

_OPTIONAL = ("alignment", "stream", "how")
"""Numbers that are zero by default."""


_LARGEST = {"size": (1 << 64) - 1, "count": (1 << 64) - 1, "stream": (1 << 16) - 1, "how": 5}
"""The largest numbers of a step, as a journal holds them; of others `MOST_NUMBER`."""
MOST_NUMBER = (1 << 32) - 1
MOST_STEPS = 5 << 18
"""The most steps of a program, and of a journal: those of the longest job, a million, with the frees at its ends."""
_MOST_TURNS = 1 << 20
"""The most turns of a ``cycle`` or a ``reuse``, which are one step."""


NEVER_REUSES = "it never lends again what was freed"
"""How the message about an arena begins, which has to be told of."""


class HeapStep(NamedTuple):
    """One operation with its numbers."""

    operation: str
    numbers: tuple[int, ...]

    @property
    def named(self) -> dict[str, int]:
        """The numbers, by their names."""
        return dict(zip(OPERATIONS[self.operation], self.numbers, strict=True))

    def as_json(self) -> list[Any]:
        """``["allocate", 0, 16]``: optional zeros at the end are left out."""
        numbers, names = list(self.numbers), OPERATIONS[self.operation]
        while numbers and not numbers[-1] and names[len(numbers) - 1] in _OPTIONAL:
            numbers.pop()
        return [self.operation, *numbers]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """A step from JSON.

        Raises
        ------
        TargetError
            If it is not a step.
        """
        if not isinstance(data, list) or not data or not isinstance(data[0], str) or data[0] not in OPERATIONS:
            raise TargetError(f"not a step: {shown(cast('object', data))}; a step is a list like ['allocate', 0, 16]")
        operation, *rest = cast("Any", data)
        names, numbers = OPERATIONS[operation], [item for item in rest if isinstance(item, int) and item >= 0]
        if len(numbers) > len(names) or numbers != rest:
            raise TargetError(
                f"not a step: {shown(cast('object', data))}; {operation} takes {', '.join(names) or 'nothing'}"
            )
        limits = {**_LARGEST, "count": _MOST_TURNS} if operation in {"cycle", "reuse"} else _LARGEST
        for name, number in zip(names, numbers, strict=False):
            if number > (most := limits.get(name, MOST_NUMBER)):
                raise TargetError(f"not a step: {shown(cast('object', data))}; {name} must be at most {most:,}")
        return cls(operation, tuple(numbers) + (0,) * (len(names) - len(numbers)))

    def call(self, moving: str = "") -> str:
        """The step as a call in Python: blocks and their size by position, each other number by its name.

        In a loop ``moving`` is what comes to the numbers of blocks.
        """
        names, numbers = OPERATIONS[self.operation], self.as_json()[1:]
        texts: list[str] = []
        for name, number in zip(names, numbers, strict=False):
            if name in _BLOCKS:
                texts.append(f"{moving} + {number}" if moving and number else moving or str(number))
            else:
                by_position = name == "size" and names[0] in _BLOCKS
                texts.append(str(number) if by_position else f"{name}={number}")
        return f"{self.operation}({', '.join(texts)})"

    def __str__(self) -> str:
        return self.call()


def allocated(block: int, size: int, alignment: int = 0) -> HeapStep:
    """The step that allocates a block."""
    return HeapStep("allocate", (block, size, alignment, 0))


def freed(block: int) -> HeapStep:
    """The step that frees a block."""
    return HeapStep("free", (block, 0))


class _OneLineError(SyncedMemoryError):
    """An error whose message is always one line, also if it quotes a longer message."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class TargetError(_OneLineError, ValueError):
    """A target, a capability record or a replay that cannot be used: not found, not recognised, contradictory."""


class EngineError(_OneLineError, RuntimeError):
    """The fuzzer itself has failed, or something outside has ended its process; this says nothing about the target."""


@dataclass(frozen=True)
class Finding:
    """A violation as data, with the steps that show it, for messages of a worker and for files.

    Attributes
    ----------
    requirement : str
    message : str
    program : tuple of HeapStep
        The steps on a new target; the last one shows the violation.  Empty if several threads took them, or if they are
        too many to be kept: then the seed of the run replays it.  The last steps if it did not repeat.
    generator : str
        The generator that found it.
    operations : int
        The number of operations until it was found.
    shrunk : bool
        Whether the program has been shrunk.
    repeats : bool
        Whether the program showed the same on a new target.  It may not do so with several threads, or if the damage
        that ended the process was done long before, or by another program.
    examined : bool
        Whether it was looked at to its end.  If that was interrupted, nobody knows whether its steps show it again.
    after : tuple of str
        Requirements that the program breaks before this one, and that are left unjudged to see this one.
    elsewhere : bool
        Whether the program showed the same in a new process with another heap.
    seed : int or None
        The seed of the run that found it, if that is another than the one of the report.
    times : int
        How often it was found.
    known : str or None
        Why it is known and no failure; None if it is not known.
    consequences : tuple of Finding
        What may follow from the same bug.
    """

    requirement: str
    message: str
    program: tuple[HeapStep, ...]
    generator: str = "fast"
    operations: int = 0
    shrunk: bool = False
    repeats: bool = True
    examined: bool = True
    after: tuple[str, ...] = ()
    elsewhere: bool = True
    seed: int | None = None
    times: int = 1
    known: str | None = None
    consequences: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """What makes it another finding than others: the requirement, and the operations that its program needs."""
        if not self.program or not self.repeats:
            return self.requirement
        return f"{self.requirement}:{'+'.join(sorted({kind_of(step) for step in self.program}))}"

    def as_json(self) -> dict[str, Any]:
        """The finding as data."""
        program, consequences = (
            [item.as_json() for item in self.program],
            [consequence.as_json() for consequence in self.consequences],
        )
        return {**vars(self), "program": program, "after": list(self.after), "consequences": consequences}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The finding from JSON."""
        program, consequences = map(HeapStep.from_json, data["program"]), map(cls.from_json, data["consequences"])
        fields = {"program": tuple(program), "after": tuple(data["after"]), "consequences": tuple(consequences)}
        return cls(**cast("Any", data | fields))

    @property
    def effort(self) -> tuple[bool, bool, int]:
        """What it takes to look into it: whether its steps do not repeat, or not elsewhere, and how many they are."""
        return not (self.repeats and self.program), not self.elsewhere, len(self.program)

    @property
    def is_arena(self) -> bool:
        """Whether it says only that the target is an arena."""
        return self.message.startswith(NEVER_REUSES)

    @property
    def text(self) -> str:
        """The sentence of the broken requirement."""
        return REQUIREMENTS[self.requirement].text

    def violation(self, program: str) -> Violation:
        """The violation, with a program in Python that shows it."""
        return Violation(self.requirement, self.message, tuple(program.splitlines()))


def kind_of(step: HeapStep) -> str:
    """The operation; a request with an alignment, on a stream or for nothing is of another kind than a plain one."""
    marks = [name for name in ("alignment", "stream") if step.operation == "allocate" and step.named[name]]
    nothing = ["nothing"] if step.operation in {"allocate", "calloc"} and not step.named["size"] else []
    return "-".join([step.operation, *marks, *nothing])
