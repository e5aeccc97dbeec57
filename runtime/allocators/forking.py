"""Forks: every lock of the library is held over a fork, and drivers of devices do not survive one.

A child has only the thread that forked.  A lock that another thread held then would never be released, and what it
guards might be half changed.  So a fork waits until it has all locks, and both processes release them.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from syncedmem.model import NoDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Home", "Locks", "fork_safe_lock", "if_free"]


def if_free(lock: threading.RLock, work: Callable[..., bool], *arguments: object) -> bool:
    """Do something with a lock, unless another thread has it; returns what it returned, or False.

    A signal handler may raise right after the lock was taken, before anybody knows whether it was.  So the lock is
    released in any case.
    """
    try:
        return lock.acquire(blocking=False) and work(*arguments)
    finally:
        try:  # noqa: SIM105 -- an interrupt in `suppress` would keep the lock
            lock.release()
        except RuntimeError:  # another thread has it
            pass


class Locks:
    """The locks that are held over a fork.

    They are taken from the newest to the oldest.  Calls nest in the same order: a memory is made after its allocators,
    and an adaptor after its upstream.  Code of others may nest in another order, and a call may last; so nobody waits
    for ever.

    Parameters
    ----------
    patience : float
        In seconds: how long a fork waits for one lock, before it gives the others back and begins with that one.
    """

    _SPARE = 1024
    _TRIES = 5

    def __init__(self, patience: float = 1.0) -> None:
        self._patience = patience
        # In the order in which they were made.  Only weak references, without callbacks: a lock costs its owner little.
        self._known: list[weakref.ref[threading.RLock]] = []
        self._most = self._SPARE
        self._swept = threading.RLock()
        self._sweeping = False
        self._held: list[threading.RLock] = []

    def add(self, lock: threading.RLock) -> None:
        """Hold a lock over every fork, as long as somebody has it."""
        self._known.append(weakref.ref(lock))
        if len(self._known) > self._most:
            if_free(self._swept, self._sweep)

    def _sweep(self) -> bool:
        """Forget the locks that nobody has any more; returns whether it could."""
        if self._sweeping:  # a finaliser that runs meanwhile makes a lock
            return False
        self._sweeping = True
        try:
            known = len(self._known)
            alive = [reference for reference in self._known[:known] if reference() is not None]
            self._known[:known] = alive  # what other threads have added meanwhile comes after these
            self._most = 2 * len(alive) + self._SPARE
        finally:
            self._sweeping = False
        return True

    def hold(self) -> None:
        """Before a fork: take all locks; those that cannot be had stay with the threads that have them."""
        known = self._known[::-1]  # in one step, because another thread may forget locks meanwhile
        wanted = [lock for reference in known if (lock := reference()) is not None]
        for _ in range(self._TRIES):
            missing = self._take(wanted, self._patience)
            if not missing:
                return
            self.release()
            wanted.remove(missing[0])
            wanted.insert(0, missing[0])
        self._take(wanted, 0)

    def _take(self, wanted: list[threading.RLock], patience: float) -> list[threading.RLock]:
        """Take locks in order; returns those that were not had: with patience at most one, because it ends there."""
        missing: list[threading.RLock] = []
        held = self._held
        for lock in wanted:
            held += (lock,)  # before it is taken, and in one step: an interrupt leaves no lock that nobody releases
            if not lock.acquire(timeout=patience):
                del held[-1]
                missing.append(lock)
                if patience:
                    break
        return missing

    def release(self) -> None:
        """Release what `hold` took, also if an interrupt comes meanwhile."""
        held = self._held
        try:
            while held:
                lock = held[-1]
                del held[-1]
                try:  # noqa: SIM105 -- as in `if_free`
                    lock.release()
                except RuntimeError:  # an interrupt came before it was taken
                    pass
        finally:
            if held:
                self.release()

    def begin_anew(self) -> None:
        """In the child: release what `hold` took."""
        self._swept, self._sweeping = threading.RLock(), False  # another thread may have had it, and has gone
        self.release()


_locks = Locks()


def fork_safe_lock() -> threading.RLock:
    """A new lock, which one thread may take several times, and which is held over every fork."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


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
        """Refuse a call in a child of that process: the driver has lost its threads there, and would wait for ever."""
        if self.lost:
            raise NoDeviceError(
                f"{self._where} was opened in process {self._process}, and its driver does not survive a fork: "
                "start processes with 'spawn', or open the device only after the fork"
            )


_homes: weakref.WeakSet[Home] = weakref.WeakSet()


def _lose() -> None:
    for home in _homes:
        home.lost = True


os.register_at_fork(before=_locks.hold, after_in_parent=_locks.release, after_in_child=_locks.begin_anew)
os.register_at_fork(after_in_child=_lose)
