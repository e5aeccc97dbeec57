"""Any machine, in every format that draws or tabulates: plain, with each detail, with some calls, with a trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from exported import exported
from machines import DOOR, EXAMPLES, MSI, TCP
from pictured import PICTURED, SHOP

from syncedmem.explorer import explorer_page
from syncedmem.model import EDITIONS
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.trace import Trace, trace_of
from syncedmem.model.exports.formats import FORMATS, export
from syncedmem.model.states import space

if TYPE_CHECKING:
    from syncedmem.model.declaration import Machine

ANY = (*EDITIONS.values(), *EXAMPLES, DOOR, *PICTURED)
DRAWN = {name: it for name, it in FORMATS.items() if it.calls}
OF_MEMORIES = re.compile(r"\b(?:memory|memories|copy|copies|copied|fresh|sides?)\b", re.IGNORECASE)


def walk_of(machine: Machine) -> Trace:
    """The first calls of a machine, as long as there are some that do something new."""
    names, state, seen = list[str](), space(machine).start, set[Any]()
    while state not in seen and len(names) < 6:
        seen.add(state)
        steps = space(machine).steps[state]
        entry = next((it for it, step in steps.items() if step.after not in seen and not step.refusal), None)
        if entry is None:
            break
        names.append(str(entry))
        state = steps[entry].after
    return trace_of(names, edition=machine)


def cases(name: str, machine: Machine) -> list[dict[str, Any]]:
    """The options of a format that are tried."""
    found: list[dict[str, Any]] = [{}, *({"detail": detail} for detail in DRAWN[name].details)]
    found.append({"calls": [next(call.name for call in machine.calls.values() if not call.ends)]})
    return [*found, {"trace": walk_of(machine)}] if DRAWN[name].trace else found


@pytest.mark.parametrize("machine", ANY, ids=str)
@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.deep(quick=30)
def test_every_machine_is_drawn_and_tabulated(name: str, machine: Machine) -> None:
    for options in cases(name, machine):
        assert export(name, edition=machine, **options)


@pytest.mark.parametrize("machine", [TCP, DOOR, SHOP], ids=str)
@pytest.mark.parametrize("name", [it for it in DRAWN if it not in ("png", "pdf")])
def test_what_is_no_memory_is_not_called_one(name: str, machine: Machine) -> None:
    for options in [{}, {"trace": walk_of(machine)}] if FORMATS[name].trace else [{}]:
        assert [] == OF_MEMORIES.findall(exported(name, machine, **options))


@pytest.mark.parametrize("name", ["c", "rust"])
def test_what_is_no_memory_is_not_called_one_in_code(name: str) -> None:
    assert [] == re.findall("memory|fresh", exported(name, TCP))


def test_a_page_to_play_with_begins_in_a_state() -> None:
    assert not re.search("fresh memory", explorer_page(SHOP), re.IGNORECASE)


def test_a_trace_of_a_machine_without_sides_has_no_sum() -> None:
    trace = trace_of("open close", edition=DOOR)
    assert 2 == len(trace.lines())
    assert "Copied" not in diagram_svg(DOOR, trace=trace)


def test_the_bullet_of_no_copy_is_only_where_something_is_copied() -> None:
    assert "no copy" in diagram_svg(MSI)
    assert "no copy" not in diagram_svg(EDITIONS["cpu_only"])
    assert 'd="M1 0H7"' in diagram_svg(MSI)
    assert 'd="M1 0H7"' not in diagram_svg(TCP)
