"""The subject of a kit: a maker of memories or of blobs, and the allocators to test it with."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from syncedmem.model import EDITIONS, InvalidArgumentError, Machine, caffe
from syncedmem.model.errors import shown
from syncedmem.model.interface import is_host
from syncedmem.model.opening import machine_of

from ..requirements import LEVELS, PROFILES
from .violation import UnfitMakerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from syncedmem.model.interface import Allocator
    from syncedmem.model.opening import AnyMachine

    from ..requirements import Level, Profile
    from .violation import Violation

__all__ = ["BlobMaker", "Maker", "Memory", "RemoteProgram", "Subject", "check_maker"]


class Memory(Protocol):
    """A mirrored memory under test.

    Host views have Python's buffer interface.  Device views have ``get()``, which copies them to the host, ordered
    after the work on the device's current stream.  A refused or failed call raises any exception.

    A memory may also have ``head`` (a `SyncedHead`, or a member of an enumeration, a string or an integer with its
    name or its number), ``size``, ``own_cpu_data``, ``cpu_malloc_use_cuda`` and ``own_gpu_data``.  The kit checks
    those that the memory has.  It learns everything else from the allocators.
    """

    def cpu_data(self) -> Any: ...
    def mutable_cpu_data(self) -> Any: ...
    def gpu_data(self) -> Any: ...
    def mutable_gpu_data(self) -> Any: ...
    def set_cpu_data(self, data: Any) -> None: ...
    def set_gpu_data(self, data: Any) -> None: ...
    def async_gpu_push(self, *, stream: Any) -> None: ...
    def close(self) -> None: ...


_KEYWORDS = {caffe.CPU: "host", caffe.GPU: "device"}
_ON_DEVICE = frozenset({caffe.GPU, "device"})


class Maker(Protocol):
    """Makes a memory that takes all its memory from the given allocators.

    A maker of memories of another machine than Caffe's gets an allocator for each side, by the side's name.

    Pageable host memory comes from `host`, device memory from `device`, page-locked host memory from
    ``device.pinned_host()``; a maker with a parameter ``pinned`` is also passed that allocator.  `device` is None for a
    memory without a device.  ``check_device=True`` is passed only to makers whose subject sets ``check_device``.
    """

    def __call__(self, size: int, *, host: Any, device: Any) -> Memory: ...


class BlobMaker(Protocol):
    """Makes a blob over memories that take all their memory from the given allocators, as for `Maker`.

    A blob has Caffe's calls under Caffe's names.  ``shape``, ``count``, ``capacity``, ``num_axes``, ``num``,
    ``channels``, ``height`` and ``width`` are attributes.  ``count_axes`` is the volume of a range of axes.
    ``data_memory`` and ``diff_memory`` are the memories: one object for all blobs that share it, each with ``head``,
    ``size`` and the accessors of `Memory`.  Views are as in `Memory`; a device view for writing has ``set()`` too.
    All blobs of a scenario are made with the same two allocators.
    """

    def __call__(self, *shape: Any, dtype: Any, host: Any, device: Any) -> Any: ...


class RemoteProgram(Protocol):
    """A program under test, asked in the words of the protocol of ports; it keeps the requests that it was sent.

    Attributes
    ----------
    protocol : Protocol
        Its words.
    level : str
    hello : dict
        What it said of itself.
    streams, buffers : int
        How many it has been told of.
    """

    protocol: Any
    level: Any
    hello: dict[str, Any]
    streams: int
    buffers: int

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request; a `Violation` is raised if there is none, or one that is none."""
        ...

    def next_id(self) -> int:
        """The number of the next request, which no memory has."""
        ...

    @property
    def largest(self) -> int:
        """The largest size that a memory may have."""
        ...

    @property
    def offers(self) -> Collection[str]:
        """The optional requests that it answers."""
        ...

    @property
    def hung(self) -> bool:
        """Whether it once did not answer in time, so that nothing more is asked after that is found."""
        ...

    def mark(self) -> None:
        """Let the requests of findings begin here."""
        ...

    def requests(self, *, whole: bool = False) -> tuple[str, ...]:
        """The requests of a finding, to send to the program again; or all since its process started."""
        ...

    def renew(self) -> None:
        """Have the next request go to a new process."""
        ...

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the requests that led to it."""
        ...


@dataclass(frozen=True)
class _Pinning:
    """Calls a maker that has a parameter ``pinned``, with the device's allocator of page-locked memory."""

    make: Any

    def __call__(self, *shape: Any, device: Any, **options: Any) -> Any:
        pinned = None if device is None else device.pinned_host()
        return self.make(*shape, device=device, pinned=pinned, **options)


_TAKES_PINNED: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
"""Whether a maker has a parameter ``pinned``; reading a signature takes longer than a short test case."""


def _takes_pinned(make: Any) -> bool:
    with suppress(KeyError, TypeError):  # a TypeError: it cannot be a key
        return _TAKES_PINNED[make]
    takes = False
    with suppress(TypeError, ValueError):  # a callable that is written in C may have no signature
        takes = "pinned" in signature(make).parameters
    with suppress(TypeError):
        _TAKES_PINNED[make] = takes
    return takes


@dataclass(frozen=True, repr=False)
class Subject:
    """A maker of memories or of blobs, and the allocators to test it with.

    Attributes
    ----------
    name : str
        The name in reports.
    make : Maker or BlobMaker
        Makes memories for `syncedmem.spec.check_conformance`, blobs for
        `syncedmem.spec.check_blobs`.
    host : Allocator
    device : Allocator or None
    profile : {"safe", "caffe"}
        With ``"caffe"``, promises beyond Caffe's are not tested.
    elsewhere : Allocator or None
        A device of the same kind with another ordinal.  It is made current while the memory works on its own device.
    check_device : bool
        Whether the maker accepts ``check_device=True``.
    source : str
        Statements that define ``subject`` for a reproducer; if empty, the reader must define it.
    level : {"L0", "L1", "L2", "L3", "L4"}
        How much of a memory is observed; what a higher level shows is not tested.
    edition : str or Machine
        The edition of the model with which its memories are compared, or the machine.  If empty, it is the first
        edition with a device, or without one.
    policy : Policy or None
        What a machine of your own decides where the theory of fresh copies leaves a choice (`syncedmem.spec.Policy`);
        None for an edition.  Without one, the memories of such a machine are judged by its own table alone.
    setting : callable or None
        Called with the name of a setting of such a machine, and its new value; Caffe's mode is known without.
    places : mapping of str to Allocator
        The allocators of sides; of those that are not named here, ``gpu`` and ``device`` are on `device`, and the
        others on `host`.
    program : RemoteProgram or None
        The program that has the memories, if they are not Python objects.
    journal : callable or None
        Called with what was done, and last with what is about to be done; for what may end the process.
    """

    name: str
    make: Maker | BlobMaker
    host: Allocator
    device: Allocator | None
    profile: Profile = "safe"
    elsewhere: Allocator | None = None
    check_device: bool = False
    source: str = ""
    level: Level = "L4"
    edition: AnyMachine = ""
    policy: Any = field(default=None, hash=False)
    setting: Callable[[str, str], None] | None = None
    places: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    program: RemoteProgram | None = None
    journal: Callable[[list[Any]], None] | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise InvalidArgumentError("level", self.level, f"one of {', '.join(LEVELS)}")
        if not self.edition:
            object.__setattr__(self, "edition", caffe.edition_for(has_device=self.device is not None).name)
        if isinstance(self.edition, Machine) and self.edition in EDITIONS.values():
            object.__setattr__(self, "edition", self.edition.name)
        self._check_machine()
        if self.profile not in PROFILES:
            raise InvalidArgumentError("profile", self.profile, f"one of {', '.join(PROFILES)}")
        if _takes_pinned(self.make):
            object.__setattr__(self, "make", _Pinning(self.make))

    def _check_machine(self) -> None:
        if not isinstance(self.edition, Machine):
            if self.policy is not None:
                raise InvalidArgumentError("edition", self.edition, "a machine, whose policy it is")
            if self.edition not in tuple(EDITIONS):
                raise InvalidArgumentError("edition", self.edition, f"one of {', '.join(EDITIONS)}, or a machine")
            if self.device is None and caffe.edition_for(has_device=False).name != self.edition:
                raise InvalidArgumentError("device", None, f"a device: the edition {self.edition} has one")
        elif self.policy is not None and set(getattr(self.policy, "sides", ())) != set(self.edition.sides):
            wanted = f"a policy for the sides {', '.join(self.edition.sides)} of {self.edition.name}"
            raise InvalidArgumentError("policy", getattr(self.policy, "sides", self.policy), wanted)
        elif odd := [side for side in self.edition.sides if not side.isidentifier()]:
            raise InvalidArgumentError("edition", self.edition.name, f"a machine whose sides are names, not {odd[0]!r}")
        others = sorted(set(self.machine.settings) - {caffe.MODE.name})
        if others and self.setting is None and self.program is None:  # a program is told of them with each call
            raise InvalidArgumentError("setting", None, f"a function that changes {', '.join(others)}")
        if unknown := sorted(set(self.places) - set(self.machine.sides)):
            raise InvalidArgumentError("places", unknown[0], f"one of the sides {', '.join(self.machine.sides)}")

    def __repr__(self) -> str:
        device = "no device" if self.device is None else f"device {self.device!r}"
        return f"<Subject {self.name!r}, {self.profile}: host {self.host!r}, {device}>"

    @property
    def defers(self) -> bool:
        """Whether copies queued on this device happen only when somebody waits; the device's ``defers`` says so.

        On such a device the kit notices a push that waits for its copy.
        """
        return bool(getattr(self.device, "defers", False))

    @cached_property
    def machine(self) -> Machine:
        """The machine with which its memories are compared."""
        return machine_of(self.edition)

    @property
    def is_caffe(self) -> bool:
        """Whether the machine is an edition of Caffe's."""
        return isinstance(self.edition, str)

    @property
    def by_table(self) -> bool:
        """Whether its memories are judged by the machine's own table, because nobody says what the machine decides."""
        return self.policy is None and not self.is_caffe

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """The sides of a memory here."""
        return tuple(side for side in self.machine.sides if self.place(side) is not None)

    def place(self, side: str) -> Any:
        """The allocator of a side; None if there is none here."""
        return self.places.get(side, self.device if side in _ON_DEVICE else self.host)

    @staticmethod
    def named(side: str) -> str:
        """The allocator of a side, as a reproducer calls it."""
        return f"subject.{_KEYWORDS[side]}" if side in _KEYWORDS else f"subject.place({side!r})"

    def is_host(self, side: str) -> bool:
        """Whether a side is host memory."""
        return side == caffe.CPU or is_host(self.place(side))

    def on_host(self, side: str) -> bool:
        """Whether the kit itself can read and write the memory of a side as host memory."""
        return self.program is None and self.is_host(side)

    @staticmethod
    def keyword(side: str) -> str:
        """What makers and reproducers call the allocator of a side."""
        return _KEYWORDS.get(side, side)

    @property
    def smallest(self) -> int:
        """The smallest size that is tested: Caffe does not say what zero bytes do, and other machines do not either."""
        return 0 if self.profile == "safe" and self.is_caffe else 1

    @property
    def largest(self) -> float:
        """The largest size that a memory may have; infinite if there is no limit."""
        return float("inf") if self.program is None else self.program.largest


def check_maker(  # noqa: PLR0913 -- how it was called, and what came of it
    subject: Subject,
    made: Any,
    error: BaseException | None,
    calls: Iterable[str],
    arguments: Iterable[object],
    named: Iterable[str],
) -> None:
    """Refuse a maker that no arguments can make right; another error may be that of these alone."""
    if error is None and not any(hasattr(made, call) for call in calls):
        raise UnfitMakerError(f"the maker {subject.name} returned {shown(made)}, which has none of {', '.join(calls)}")
    if isinstance(error, TypeError):
        try:
            signature(subject.make).bind(*arguments, **dict.fromkeys(named))
        except TypeError as why:
            words = ("size" if isinstance(argument, int) else "shape" for argument in arguments)
            called = ", ".join((*words, *(f"{name}=..." for name in named)))
            raise UnfitMakerError(f"the maker {subject.name} cannot be called with ({called}): {why}") from error
        except ValueError:  # it is written in C, and has no signature
            pass
