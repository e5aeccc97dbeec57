"""How an error is reported that nobody can catch."""

from __future__ import annotations

__all__ = ["print_unraisable"]


# The traceback of the error gets frames of this module.  So no variable here keeps the error: in such a cycle the
# objects of all its frames would wait for the garbage collector, and their memory with them.
def print_unraisable(error: BaseException) -> None:
    """Let Python print an error as it prints that of a finaliser, through ``sys.unraisablehook``; never raises."""
    errors = [error]
    del error
    _Finaliser(errors)


class _Finaliser:
    def __init__(self, errors: list[BaseException]) -> None:
        self._errors = errors

    def __del__(self) -> None:
        raise self._errors.pop()
