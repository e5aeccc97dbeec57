"""`LoggingAllocator`: logs every allocation and release, as JSON lines or in RMM's format."""

from __future__ import annotations

import json
import threading
import warnings
from contextlib import suppress
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from syncedmem.model.errors import said, shown

from .adaptor import Adaptor
from .failures import take_back
from .pointers import address_of, size_of

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["LoggingAllocator"]

COLUMNS = ("Thread", "Time", "Action", "Pointer", "Size", "Stream")
"""The names of RMM's columns."""


class LoggingAllocator(Adaptor):
    """Logs what is allocated and released; RMM's ``LoggingResourceAdaptor``.

    A line has the thread, the time, the action, the address, the size in bytes, and the stream.  The stream is always
    0, because our memory is not allocated on a stream.  The action is ``allocate``, ``allocate failure``, ``free``, or
    ``free failure``; the last follows a ``free`` that failed.  If the log cannot be written, no call fails and no
    memory is lost: calls continue, `failure` has the error, and there is one warning.

    Parameters
    ----------
    upstream : DeviceAllocator
    log : path or text file
        A file that is given as a path is overwritten, and closed by `close`.  An open file stays open.
    csv : bool
        Write RMM's columns, with their names first, instead of JSON lines.

    Attributes
    ----------
    failure : Exception or None
        The error of the first line that could not be written.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """

    def __init__(self, upstream: DeviceAllocator, log: str | PathLike[str] | TextIO, *, csv: bool = False) -> None:
        super().__init__(upstream)
        self.failure: Exception | None = None
        self._csv = csv
        self._lock = threading.RLock()
        self._own = isinstance(log, str | PathLike)
        self._file: Any = open(log, "w", encoding="utf-8", buffering=1) if isinstance(log, str | PathLike) else log  # noqa: SIM115, PTH123 -- closed by close()
        if csv:
            self._write(COLUMNS)

    def allocate(self, byte_size: int) -> Pointer | None:
        try:
            ptr = self._upstream.allocate(byte_size)
        except Exception:
            self._note("allocate failure", None, byte_size)
            raise
        if ptr is not None:
            try:
                self._note("allocate", ptr, len(ptr))
            except BaseException as error:  # an interrupt, while the log is written
                take_back(self._upstream, ptr, error)
                raise
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        # The line is written before the release: after it, another thread may get this address and log it.
        noted = ptr is not None and self._note("free", ptr, size_of(ptr))
        try:
            self._upstream.release(ptr)
        except BaseException:
            if noted:
                self._note("free failure", ptr, size_of(ptr))
            raise

    def _note(self, action: str, ptr: Pointer | None, size: object) -> bool:
        """Write a line; returns whether it was written."""
        if self._file is None:
            return False
        try:
            address = f"{0 if ptr is None else address_of(ptr):#x}"
            now = datetime.now().astimezone()
            time = f"{now:%H:%M:%S.%f}" if self._csv else now.isoformat()
            self._write((threading.get_ident(), time, action, address, size, "0x0"))
        except Exception as error:  # noqa: BLE001 -- whatever the error is, the memory must not be lost
            self._miss(error)
            return False
        return True

    def _write(self, values: tuple[object, ...]) -> None:
        if self._csv:
            line = ",".join(map(str, values))
        else:
            line = json.dumps(dict(zip(map(str.lower, COLUMNS), values, strict=True)), default=shown)
        with self._lock:
            self._file.write(f"{line}\n")

    def _miss(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            with suppress(RuntimeWarning):  # this warning must not fail the call, even if warnings are errors
                warnings.warn(f"the log of {self.name} is not complete: {said(error)}", RuntimeWarning, stacklevel=4)

    def close(self) -> None:
        """Close the file if it was opened here.  Later calls are not logged.  Closing twice is harmless."""
        file, self._file = self._file, None
        if self._own and file is not None:
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
