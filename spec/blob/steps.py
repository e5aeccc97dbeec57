"""Steps of blobs: everything that is done to them, as plain data.  A case is a list of steps."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Literal, NamedTuple

from .elements import USUAL

__all__ = [
    "FORESEEN",
    "GIVEN",
    "PARTS",
    "REFUSED",
    "UNCHANGED",
    "BlobCase",
    "BlobStep",
    "Exported",
    "Lent",
    "Message",
    "Other",
    "Part",
    "Shape",
    "case_of",
    "in_mode",
    "name_of",
    "new",
    "refused",
    "valued",
]

Shape = tuple[int, ...]
Part = Literal["data", "diff"]
PARTS: tuple[Part, ...] = ("data", "diff")


# --- arguments that are no plain values


class Other(NamedTuple):
    """Another blob."""

    blob: int


class Exported(NamedTuple):
    """A view for writing of a part of a blob, on the side of the call; of ``shape``, its extents on the device."""

    blob: int
    part: Literal["data", "diff", "shape"] = "data"


class Lent(NamedTuple):
    """An object of the caller, of so many bytes.

    Attributes
    ----------
    form : str
        ``bytearray``, ``doubles``, ``read-only``, ``device`` for memory there, ``object`` or ``memory`` for what is no
        buffer; if empty, a buffer of the blob's size and of its numbers, on the side of the call.
    size : int
    """

    form: str = ""
    size: int = 0


class Message(NamedTuple):
    """A message: its fields in the order in which they are set, to a number or to several."""

    fields: tuple[tuple[str, Any], ...] = ()


GIVEN = Lent()


# --- steps


class Due(Enum):
    """What a step must do, unless it must return a value."""

    FORESEEN = auto()
    REFUSED = auto()
    UNCHANGED = auto()


FORESEEN, REFUSED, UNCHANGED = Due.FORESEEN, Due.REFUSED, Due.UNCHANGED


class BlobStep(NamedTuple):
    """Something that is done to one blob, or to all.

    Attributes
    ----------
    blob : int
        Its number in the case.
    call : str
        A call or an attribute.  Besides these: ``new`` makes a blob, ``mode`` changes Caffe's mode, and ``drop`` drops
        all blobs.
    arguments : tuple
        Plain values, and `Other`, `Exported`, `Lent` and `Message`.
    options : tuple of (str, object)
        Keyword arguments.
    about : str
        The requirement that the whole step is about, if it is not the usual one.
    expected : object
        `FORESEEN`: what the oracle foresees.  It knows nothing of axes and positions, and refuses only what Caffe
        refuses.  So a step can have an expectation of its own, and must then call no allocator: `REFUSED`, it raises
        and changes nothing; `UNCHANGED`, it is accepted and changes nothing; or the value that it returns.
    values : tuple of float
        The numbers to write through the view that the call returns; if empty, whole numbers.
    fail : int
        The number of its allocator call that fails, from 1; afterwards the call is made again.  0 if none does.
    number, elements : int
        Which whole numbers are written, or are in a buffer that is handed in, and how many; known when it is done.
    """

    blob: int
    call: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    about: str = ""
    expected: Any = FORESEEN
    values: tuple[float, ...] = ()
    fail: int = 0
    number: int = 0
    elements: int = 0

    @property
    def blobs(self) -> set[int]:
        """The blobs that it uses, and that have to be there."""
        others = {given.blob for given in self.arguments if isinstance(given, Other | Exported)}
        return others if self.call in ("new", "mode", "drop") else {self.blob, *others}

    @property
    def changed(self) -> set[int]:
        """The blobs that it may change; a copy also brings its source up to date."""
        return self.blobs if self.call == "copy_from" else {self.blob}

    @property
    def is_valued(self) -> bool:
        """Whether it must return a value, which is all that is looked at."""
        return not isinstance(self.expected, Due)

    @property
    def dtype(self) -> str:
        """The element type of a new blob."""
        return str(dict(self.options)["dtype"])

    @property
    def spelled(self) -> str:
        """What is done, as a message names it."""
        return "making a blob" if self.call == "new" else f"{name_of(self.blob)}.{self.call}"


BlobCase = tuple[BlobStep, ...]


def case_of(shapes: tuple[Shape | None, ...], steps: tuple[BlobStep, ...], dtype: str = USUAL) -> BlobCase:
    """A case with a blob of each shape, or without one if it is None."""
    return (*(new(n, shape, dtype) for n, shape in enumerate(shapes)), *steps)


def new(n: int, shape: Shape | None, dtype: str = USUAL) -> BlobStep:
    """The step that makes a blob.  The first has the type of all blobs of a case; one of another type is a stranger."""
    return BlobStep(n, "new", () if shape is None else (shape,), (("dtype", dtype),))


def in_mode(mode: Any) -> BlobStep:
    """The step that changes Caffe's mode."""
    return BlobStep(0, "mode", (mode,))


def valued(requirement: str, expected: object, call: str, *arguments: Any) -> BlobStep:
    """A call of the first blob that must return a value because of a requirement."""
    return BlobStep(0, call, arguments, about=requirement, expected=expected)


def refused(requirement: str, call: str, *arguments: Any) -> BlobStep:
    """A call of the first blob that must be refused because of a requirement."""
    return BlobStep(0, call, arguments, about=requirement, expected=REFUSED)


def name_of(n: int) -> str:
    """The name of a blob in messages and programs."""
    return "blob" if n == 0 else f"blob{n + 1}"
