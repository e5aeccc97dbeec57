"""How an error is reported that nobody can catch."""

from __future__ import annotations

__all__ = ["print_unraisable"]


def print_unraisable(error: BaseException) -> None:
    """Let Python print an error as it prints that of a finaliser, through ``sys.unraisablehook``; never raises."""
    _Finaliser(error)


class _Finaliser:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __del__(self) -> None:
        raise self._error
