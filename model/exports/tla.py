"""The machine with flags, ownership and contents in TLA+."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..editions import head_machine
from ..head import Fact, SyncedHead
from ..mode import Mode
from .contents import BY_MODE, updates
from .formal import Notation, invariants, name_of, version_name
from .vocabulary import Host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .contents import Update

__all__ = ["tla_config", "tla_module"]

_SAY = Notation("~", "/\\", "\\/", "<=>", "=", '"{}"')


def tla_module(edition: str = "caffe") -> str:
    """A module ``SyncedMemory`` with the constant ``K``: contents count modulo K, at least 2.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    facts = [fact for fact in Fact if fact in head_machine(edition).edition.facts]
    variables = ["head", "mode", "fault", *map(name_of, facts), *map(version_name, Host)]
    found = updates(edition)
    start = {"head": f'"{SyncedHead.UNINITIALIZED.name}"', "fault": "FALSE"}
    start |= {name_of(fact): "FALSE" for fact in facts} | {version_name(place): "0" for place in Host}
    modes = ", ".join(f'"{mode.name}"' for mode in Mode)
    others = [name for name in variables if name != "mode"]
    lines = [
        "---- MODULE SyncedMemory ----",
        f"\\* The head machine of SyncedMemory, edition {edition}. Made by syncedmem diagram.",
        "EXTENDS Naturals",
        "CONSTANT K",
        f"VARIABLES {', '.join(variables)}",
        f"vars == <<{', '.join(variables)}>>",
        "",
        f"Init == mode \\in {{{modes}}}",
        *(f"  /\\ {name} = {value}" for name, value in start.items()),
        "",
        *(line for update in found for line in _action(update, variables)),
        f"SetMode == mode' \\in {{{modes}}}",
        f"  /\\ UNCHANGED <<{', '.join(others)}>>",
        "",
        "Next == SetMode",
        *(f"  \\/ {update.name}" for update in found),
        "",
        "Spec == Init /\\ [][Next]_vars",
        "",
        *(f"\\* {it.about}\n{it.name} == {it.text}\n" for it in invariants(edition, _SAY)),
        "====",
    ]
    return "\n".join(lines) + "\n"


def tla_config(edition: str = "caffe", *, modulus: int = 4) -> str:
    """What a checker is to be told: the constant, and every invariant."""
    names = "\n".join(f"INVARIANT {it.name}" for it in invariants(edition, _SAY))
    return f"INIT Init\nNEXT Next\nCONSTANT K = {modulus}\n{names}\n"


def _action(update: Update, variables: list[str]) -> Iterable[str]:
    guards = [_SAY.literal(fact, value=value) for fact, value in update.asked]
    changes = {name_of(fact): _value(value) for fact, value in update.facts.items()}
    changes |= {version_name(place): _SAY.version(version) for place, version in update.versions.items()}
    if update.dest is not update.head:
        changes["head"] = f'"{update.dest.name}"'
    wrong = [_SAY.literal(fact, value=value) for fact, value in update.faults] + ["TRUE"] * update.broken
    if wrong:
        changes["fault"] = " \\/ ".join(["fault", *wrong])
    kept = [name for name in variables if name not in changes]
    yield f"\\* {update.identifier}"
    yield f"{update.name} == {_SAY.is_head(update.head)}"
    yield from (f"  /\\ {guard}" for guard in guards)
    yield from (f"  /\\ {name}' = ({value})" for name, value in changes.items())
    yield f"  /\\ UNCHANGED <<{', '.join(kept)}>>\n"


def _value(value: bool | None) -> str:
    return f'mode = "{Mode.GPU.name}"' if value is BY_MODE else str(value).upper()
