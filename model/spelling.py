"""How enumerations of the package are printed."""

from __future__ import annotations

from typing import Any

__all__ = ["Spelled"]


class Spelled:
    """A base of enumerations whose members print as Python spells them: ``Mode.GPU``."""

    def __repr__(self) -> str:
        member: Any = self
        return f"{type(self).__name__}.{member.name}"
