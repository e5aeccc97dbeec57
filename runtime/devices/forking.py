"""`Home`: the process that a driver was started in.  Drivers of devices do not survive a fork."""

from __future__ import annotations

import os

from syncedmem.model import NoDeviceError

__all__ = ["Home"]


class Home:
    """The process in which a device was opened.

    Parameters
    ----------
    where : str
        The device, as errors show it.
    """

    __slots__ = ("_process", "_where")

    def __init__(self, where: str) -> None:
        self._where = where
        self._process = os.getpid()

    def check(self) -> None:
        """Refuse a call in a child of that process, where the driver has lost its threads and would wait for ever.

        Raises
        ------
        NoDeviceError
        """
        if os.getpid() != self._process:
            raise NoDeviceError(
                f"{self._where} was opened in process {self._process}, and its driver does not survive a fork: "
                "start processes with 'spawn', or open the device after the fork only"
            )
