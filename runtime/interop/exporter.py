"""Memory of a `DeviceAllocator` for libraries that use addresses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, cast

from syncedmem.model import InvalidArgumentError, InvalidPointerError
from syncedmem.model.interface import OPERATIONS, DeviceType, MemcpyKind, Pointer

from ..allocators.failures import block_from, is_refused, take_back, told, warn_of_leak, where_of
from ..allocators.pointers import check_byte_size
from ..allocators.unraisable import print_unraisable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["ExportedBlock", "Exporter"]


class Exporter:
    """Exports memory of an allocator by address.

    Threads may allocate and give back at the same time, if the allocator allows it.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of host or CUDA memory; other memory has no addresses.
    alignment : int
        In bytes; every address is a multiple of it.  If the allocator's address is not, a larger block is taken.
    host_only : bool
        Refuse CUDA memory too.
    """

    def __init__(self, allocator: object, *, alignment: int = 1, host_only: bool = False) -> None:
        kind = getattr(allocator, "device_type", None)
        complete = not isinstance(allocator, type) and all(hasattr(allocator, call) for call in OPERATIONS)
        if not complete or kind not in ((DeviceType.CPU,) if host_only else (DeviceType.CPU, DeviceType.CUDA)):
            where = "the host" if host_only else "the host or on CUDA"
            raise InvalidArgumentError("allocator", allocator, f"an allocator of memory with addresses, on {where}")
        self.allocator: DeviceAllocator = cast("DeviceAllocator", allocator)
        self.on_device: bool = kind is DeviceType.CUDA
        self._alignment = alignment
        self._blocks: dict[int, _Block] = {}
        # Stored here, because at the end of the process the names of this module may be gone already.
        self._is_over = sys.is_finalizing

    @property
    def ordinal(self) -> int:
        """The number of the device that has the memory."""
        return self.allocator.ordinal

    def __len__(self) -> int:
        """How many blocks are exported."""
        return len(self._blocks)

    def allocate(self, byte_size: int) -> int:
        """Export memory.

        Parameters
        ----------
        byte_size : int
            In bytes.

        Returns
        -------
        int
            The address of the memory, or 0 for zero bytes.
        """
        size = check_byte_size(byte_size, limit=sys.maxsize - self._alignment)
        if size == 0:
            return 0
        block = block_from(self.allocator, size)
        try:
            if gap := -self._start(block) % self._alignment:
                whole, block = block, None
                try:
                    self.allocator.release(whole)
                except BaseException as error:
                    if is_refused(self.allocator, whole, error):
                        block = whole  # it is taken back below
                    raise
                block = block_from(self.allocator, size + self._alignment - 1)
                gap = -self._start(block) % self._alignment
            address, exported = self._start(block) + gap, _Block(block, gap, size)
        except BaseException as error:
            take_back(self.allocator, block, error)
            raise
        self._blocks[address] = exported
        return address

    def _start(self, block: Pointer) -> int:
        return int(block.data.ptr if self.on_device else block.__array_interface__["data"][0])

    def export(self, byte_size: int, wait: Callable[[int], object] | None = None) -> ExportedBlock:
        """Export memory that is given back when the returned object is gone.

        Parameters
        ----------
        byte_size : int
        wait : callable or None
            As for `give_back`.
        """
        return ExportedBlock(self, byte_size, wait)

    def array_at(self, address: int) -> Pointer:
        """The array of exactly the bytes that are exported at an address."""
        block, gap, size = self._found(address)
        return block if size == len(block) else block[gap : gap + size]

    def _found(self, address: int) -> _Block:
        try:
            return self._blocks[address]
        except KeyError:
            raise self._unknown(address) from None

    def deallocate(self, address: int, byte_size: int | None = None) -> None:
        """Take memory back.

        Parameters
        ----------
        address : int
            What `allocate` returned; 0 is ignored.
        byte_size : int or None
            The size of the block in bytes, if the library knows it; then it is checked.

        Raises
        ------
        InvalidPointerError
            If no memory is exported at this address, or it has another size.  Nothing has changed then.  The
            allocator's ``release`` may raise other errors; then the memory is still exported.
        """
        if address == 0:
            return
        block, _, size = self._found(address)
        if byte_size not in (None, size):
            raise InvalidPointerError(where_of(self.allocator), hex(address), f"it has {size} bytes, not {byte_size}")
        try:
            # No call between these two lines, so of two threads that give the same block back only one succeeds, and no
            # interrupt loses it.  It comes before the release, because the address may be exported again before
            # release() returns.
            exported = self._blocks[address]
            del self._blocks[address]
        except KeyError:
            raise self._unknown(address) from None
        try:
            self.allocator.release(block)
        except BaseException as error:
            if is_refused(self.allocator, block, error):
                self._blocks[address] = exported
            raise

    def give_back(
        self, address: int, byte_size: int | None = None, wait: Callable[[int], object] | None = None
    ) -> None:
        """As `deallocate`, for callers that cannot handle an exception: Python prints it, as one of a finaliser.

        After an error or an interrupt nobody gives the memory back again, and a ``ResourceWarning`` says how many bytes
        leaked, or may be lost.  At the end of the process nothing happens: the memory goes with the process.

        Parameters
        ----------
        address : int
        byte_size : int or None
            As for `deallocate`.
        wait : callable or None
            Gets the address, and waits for the work that may still use the memory, or makes the allocator wait for it.
            It is called only for device memory.
        """
        if self._is_over():
            return
        try:
            size = self._blocks[address].size  # no call, so that no interrupt comes before it is known
        except KeyError:
            size = 0
        try:
            if wait is not None and self.on_device and address:
                wait(address)
            self.deallocate(address, byte_size)
        except BaseException as error:  # noqa: BLE001 -- the caller is C, which cannot handle an exception
            if address in self._blocks and not isinstance(error, InvalidPointerError):  # a mistake can be mended
                warn_of_leak(f"{size} bytes leaked on {where_of(self.allocator)}: {told(error)}", error)
            print_unraisable(error)

    def wait_for_device(self, _address: int) -> None:
        """Wait for all work of the device: for libraries that do not say what uses their memory."""
        self.allocator.memcpy(None, None, 0, MemcpyKind.CUDA2CUDA, None, need_sync=True)

    def _unknown(self, address: int) -> InvalidPointerError:
        return InvalidPointerError(where_of(self.allocator), hex(address), "no block is exported at this address")


class _Block(NamedTuple):
    """What is exported at an address: `size` bytes of an array, after a gap of so many bytes at its start."""

    array: Pointer
    gap: int
    size: int


class _Owned:
    """An address that has to be given back: at the latest when this object is gone.

    Its owner gives it back.  If an interrupt keeps the owner from doing so, this does it.
    """

    __slots__ = ("address", "exporter", "wait")

    def __init__(self, exporter: Exporter, wait: Callable[[int], object] | None) -> None:
        self.exporter: Exporter = exporter
        self.wait: Callable[[int], object] | None = wait
        self.address: int = 0

    def give_back(self) -> None:
        # No call between the two, so that of two threads only one gives it back.
        address, self.address = self.address, 0
        if not address:
            return
        try:
            self.exporter.give_back(address, None, self.wait)
        except BaseException:  # an interrupt before it has done anything: it raises nothing after that
            self.address = address
            raise

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self.give_back()


class ExportedBlock:
    """A block of memory that is exported until this object is gone.

    Parameters
    ----------
    exporter : Exporter
    byte_size : int
    wait : callable or None
        As for `Exporter.give_back`.

    Attributes
    ----------
    ptr : int
        The address of the block, or 0 for zero bytes.
    size : int
        In bytes.
    """

    __slots__ = ("__weakref__", "_owned", "ptr", "size")

    def __init__(self, exporter: Exporter, byte_size: int, wait: Callable[[int], object] | None = None) -> None:
        self._owned = _Owned(exporter, wait)
        self.size: int = byte_size
        self.ptr: int = 0
        self._owned.address = self.ptr = exporter.allocate(byte_size)

    def give_back(self) -> None:
        """Give the block back now.  Giving it back twice is harmless."""
        self._owned.give_back()

    def __del__(self) -> None:
        if hasattr(self, "_owned"):
            self.give_back()
