"""`Home`: the process in which a driver was started.  Drivers of devices do not survive a fork."""

from __future__ import annotations

import os
import weakref

from syncedmem.model import NoDeviceError

__all__ = ["Home"]


class Home:
    """The process in which a device was opened.

    Parameters
    ----------
    where : str
        The device, as errors show it.

    Attributes
    ----------
    lost : bool
        Whether this process is a child of that process.  A plain attribute, because views read it at every call.
    """

    __slots__ = ("__weakref__", "_process", "_where", "lost")

    def __init__(self, where: str) -> None:
        self._where = where
        self._process = os.getpid()
        self.lost: bool = False
        _homes.add(self)

    def check(self) -> None:
        """Refuse a call in a child of that process: the driver has lost its threads there, and would wait for ever.

        Raises
        ------
        NoDeviceError
            In a child process.
        """
        if self.lost:
            raise NoDeviceError(
                f"{self._where} was opened in process {self._process}, and its driver does not survive a fork: "
                "start processes with 'spawn', or open the device only after the fork"
            )


_homes: weakref.WeakSet[Home] = weakref.WeakSet()


def _lose() -> None:
    for home in _homes:
        home.lost = True


os.register_at_fork(after_in_child=_lose)
