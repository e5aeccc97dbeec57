"""Subclasses of users that forget ``super().__init__()``."""

from __future__ import annotations

from functools import wraps
from typing import Any

from syncedmem.model import NotInitializedError

__all__ = ["require_init"]


def require_init(cls: type[Any], attribute: str) -> None:
    """Let the ``__init__`` of a subclass fail if that of the base, which sets `attribute`, was not called.

    Parameters
    ----------
    cls : type
        The subclass, in ``__init_subclass__`` of its base.
    attribute : str
    """
    init = vars(cls).get("__init__")
    if init is None:
        return

    @wraps(init)
    def checked(self: object, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        if not hasattr(self, attribute):
            raise NotInitializedError(cls.__name__)

    cls.__init__ = checked
