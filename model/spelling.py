"""How enumerations of the package are printed."""

from __future__ import annotations

from typing import Any

__all__ = ["Spelled"]


class Spelled:
    """A base of enumerations whose members print as Python spells them: ``Mode.GPU``, ``Fact.A | Fact.B``."""

    def __repr__(self) -> str:
        member: Any = self
        name = type(self).__name__
        if member.name is None:  # flags without a bit
            return f"{name}({member.value})"
        return " | ".join(f"{name}.{part}" for part in member.name.split("|"))
