"""The machine with flags, ownership and contents in Promela, the language of SPIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..editions import head_machine
from ..head import Fact, SyncedHead
from .contents import BY_MODE, updates
from .formal import Notation, invariants, name_of, version_name
from .vocabulary import Host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .contents import Update

__all__ = ["promela"]

_SAY = Notation("!", "&&", "||", "==", "==", "{}")


def promela(edition: str = "caffe") -> str:
    """A model with the macro ``K``: contents count modulo K, from 2 to 255.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    edition_ = head_machine(edition).edition
    facts = [fact for fact in Fact if fact in edition_.facts]
    lines = [
        f"/* The head machine of SyncedMemory, edition {edition}. Made by syncedmem diagram.",
        "   spin -o2 -DK=4 -a FILE && cc -DSAFETY -o pan pan.c && ./pan",
        "   Without -o2, SPIN forgets the flag that nothing reads, and has fewer states. */",
        "#ifndef K",
        "#define K 4",
        "#endif",
        f"mtype = {{ {', '.join(head.name for head in edition_.heads)} }};",
        f"mtype head = {SyncedHead.UNINITIALIZED.name};",
        "bool gpu_mode, fault;",
        f"bool {', '.join(map(name_of, facts))};",
        f"byte {', '.join(map(version_name, Host))};",
        "",
        "inline check() {",
        *(f"  assert({it.text}); /* {it.about} */" for it in invariants(edition, _SAY)),
        "}",
        "",
        "active proctype memory() {",
        "  do",
        "  :: d_step { gpu_mode = !gpu_mode; check() }",
        *(line for update in updates(edition) for line in _option(update)),
        "  od",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _option(update: Update) -> Iterable[str]:
    guards = [_SAY.is_head(update.head), *(_SAY.literal(fact, value=value) for fact, value in update.asked)]
    wrong = [_SAY.literal(fact, value=value) for fact, value in update.faults] + ["true"] * update.broken
    steps = [f"fault = {' || '.join(['fault', *wrong])}"] if wrong else []
    # A copy is taken before the copied side is written to, and no row changes both: the order is of no matter.
    steps += [f"{version_name(place)} = {_SAY.version(version)}" for place, version in update.versions.items()]
    steps += [f"{name_of(fact)} = {_value(value)}" for fact, value in update.facts.items()]
    steps += [f"head = {update.dest.name}"] * (update.dest is not update.head)
    yield f"  /* {update.identifier} */"
    yield f"  :: d_step {{ {' && '.join(guards)} -> {'; '.join([*steps, 'check()'])} }}"


def _value(value: bool | None) -> str:
    return "gpu_mode" if value is BY_MODE else str(value).lower()
