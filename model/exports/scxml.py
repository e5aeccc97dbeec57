"""The machine as SCXML, the W3C's state charts.

An event is a call; ``set_cpu_data.null`` is one without data, and ``set_mode.GPU`` a change of mode.  Actions and
refusals are written with ``<log>``, where an interpreter hooks in.  Conditions compare numbers, so that they mean the
same in any data model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..drawing import Detail
from ..editions import head_machine
from ..exploration import matrix
from ..head import EFFECTS, Action, Call, Fact, Guard, SyncedHead
from ..mode import Mode
from .xstate import END

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..exploration import Configuration, Input
    from ..head import Transition

__all__ = ["scxml"]

_NULL = ".null"
_MODE = "mode"


def scxml(edition: str = "caffe", *, calls: Collection[Call] = (), detail: Detail = Detail.GUARDS) -> str:
    """Write the machine of an edition as SCXML; the parameters and errors are those of `xstate_machine`.

    Returns
    -------
    str
        With an XML declaration, ending in a newline.  With ``CONFIGURATIONS`` a state is called ``C.o-``, because
        an identifier has no colon.
    """
    body = _flat(edition, calls) if detail is Detail.CONFIGURATIONS else _guarded(edition, calls)
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *body, f'  <final id="{END}"/>', "</scxml>"]) + "\n"


def _opened(initial: str, model: str) -> str:
    return (
        f'<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="syncedmem" datamodel="{model}" '
        f'initial="{initial}">'
    )


def _guarded(edition: str, calls: Collection[Call]) -> Iterable[str]:
    machine = head_machine(edition)
    yield _opened("memory", "ecmascript")
    yield "  <datamodel>"
    yield from (f'    <data id="{_name(fact)}" expr="0"/>' for fact in Fact if fact in machine.edition.facts)
    yield f'    <data id="{_MODE}" expr="{Mode.GPU.value}"/>'
    yield "  </datamodel>"
    yield f'  <state id="memory" initial="{SyncedHead.UNINITIALIZED.name}">'
    for mode in Mode:
        yield f'    <transition event="set_mode.{mode.name}">{_assign(_MODE, str(mode.value))}</transition>'
    for head in machine.edition.heads:
        yield f'    <state id="{head.name}">'
        for row in machine.declaration.rows:
            if head in row.source and (not calls or row.call in calls):
                yield f"      {_row(row, machine.edition.facts)}"
        yield "    </state>"
    yield "  </state>"


def _name(fact: Fact) -> str:
    return (fact.name or "").lower()


def _assign(location: str, value: str) -> str:
    return f'<assign location="{location}" expr="{value}"/>'


def _log(label: str, text: str) -> str:
    return f"""<log label="{label}" expr="'{text}'"/>"""


def _row(row: Transition, tracked: Fact) -> str:
    data = Guard.HAS_DATA not in row.unless
    asked = [_name(guard.fact) for guard in row.conditions if guard.fact]
    asked += [f"(1 - {_name(guard.fact)})" for guard in row.unless if guard.fact]
    # An event without a suffix would match those with one too, so the row for NULL comes first in the table.
    event = row.call.value + ("" if data else _NULL)
    condition = f' cond="{" * ".join(asked)} == 1"' if asked else ""
    target = "" if row.refusal else f' target="{row.dest.name if row.dest else END}"'
    done = _log("refuse", row.refusal.value) if row.refusal else "".join(_acted(it, tracked) for it in row.actions)
    return f'<transition event="{event}"{condition}{target}>{done}</transition>'


def _acted(action: Action, tracked: Fact) -> str:
    effect = EFFECTS[action]
    changes = ((effect.sets, "1"), (effect.clears, "0"), (effect.by_mode, _MODE))
    assigned = [_assign(_name(fact), value) for facts, value in changes for fact in Fact if fact in facts & tracked]
    return _log("perform", action.value) + "".join(assigned)


def _flat(edition: str, calls: Collection[Call]) -> Iterable[str]:
    machine, found = head_machine(edition), matrix(edition)
    yield _opened(_identifier(next(iter(found))), "null")
    for before, row in found.items():
        yield f'  <state id="{_identifier(before)}">'
        # Longer names first: an event without a suffix would match those with one too.
        for asked, entry in sorted(row.items(), key=lambda item: item[0].data):
            if calls and asked.call not in calls:
                continue
            target = "" if entry.refusal else f' target="{_identifier(entry.after)}"'
            steps = [_log("perform", action.value) for action in entry.actions]
            done = _log("refuse", entry.refusal.value) if entry.refusal else "".join(steps)
            yield f'    <transition event="{_event(asked)}"{target}>{done}</transition>'
        if not calls or Call.RELEASE in calls:
            end = machine.row(Call.RELEASE, before.head, before.facts, data=True)
            freed = "".join(_log("perform", action.value) for action in end.actions)
            yield f'    <transition event="{Call.RELEASE.value}" target="{END}">{freed}</transition>'
        yield "  </state>"


def _identifier(configuration: Configuration) -> str:
    return str(configuration).replace(":", ".")


def _event(asked: Input) -> str:
    return (asked.call.value if asked.call else "") + ("" if asked.data else _NULL)
