"""The end of what other processes print, whatever they print."""

from __future__ import annotations

import os
import threading
from typing import Self

__all__ = ["Tail"]

_MOST = 1 << 20


class Tail:
    """A pipe that a thread empties; its last megabyte is kept.

    A file would have all that a target prints, which may be more than there is room for.

    Attributes
    ----------
    end : int
        Where the other processes write.
    """

    def __init__(self) -> None:
        self.end: int
        self._begin, self.end = os.pipe()
        self._last_words = os.urandom(16)  # not the end of the file: somebody may keep the pipe open
        self._kept = bytearray()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to read; a fork must come before that, because it would have no thread."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._last_words not in self._kept[-(1 << 17) :]:
            self._kept += os.read(self._begin, 1 << 16)
            del self._kept[:-_MOST]

    def text(self) -> str:
        """What was printed until now; nothing is read after that."""
        if self._thread is not None:
            os.write(self.end, self._last_words)
            self._thread.join()
            self._thread = None
        return self._kept.partition(self._last_words)[0].decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.text()
        os.close(self._begin)
        os.close(self.end)
