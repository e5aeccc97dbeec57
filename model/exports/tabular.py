"""The tables as reStructuredText, HTML and CSV; in Markdown they are in ``tables``."""

from __future__ import annotations

import csv
import io
from html import escape
from typing import TYPE_CHECKING

from ..diagrams.drawing import Detail, guards_of
from ..editions import head_machine
from ..exploration import matrix
from .tables import Markup, flag_changes, table_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..head import Call, Fact, Transition

__all__ = ["csv_table", "html_table", "rst_table"]

_RST = Markup("``{}``".format, "**{}**".format)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _strong(text: str) -> str:
    return f"<strong>{escape(text)}</strong>"


_HTML = Markup(_code, _strong)


def rst_table(edition: str = "caffe", *, calls: Collection[Call] = (), detail: Detail = Detail.GUARDS) -> str:
    """A table as a ``list-table`` of reStructuredText; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail)
    name = _RST.code if table.coded else str
    lines = [".. list-table::", "   :header-rows: 1", "   :stub-columns: 1", ""]
    lines += _rst_row([[text] for text in table.header])
    for called, cells in table.rows:
        said = [[_RST.said(line, coded=table.coded) for line in cell] for cell in cells]
        lines += _rst_row([[name(called)], *said])
    if table.legend:
        lines += ["", ", ".join(f"{_RST.code(code)} {meaning}" for code, meaning in table.legend) + "."]
    return "\n".join(lines) + "\n"


def _rst_row(cells: list[list[str]]) -> list[str]:
    """The cells of a row; one of several lines is a line block."""
    lines: list[str] = []
    for number, cell in enumerate(cells):
        first, *others = [f"| {text}" for text in cell] if len(cell) > 1 else cell
        lines.append(f"   {' ' if number else '*'} - {first}")
        lines += [f"       {text}" for text in others]
    return lines


def html_table(edition: str = "caffe", *, calls: Collection[Call] = (), detail: Detail = Detail.GUARDS) -> str:
    """A table as an HTML element with a caption and scopes; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail)
    lines = ["<table>", f"<caption>Head machine of SyncedMemory, edition {escape(edition)}</caption>", "<thead>"]
    header = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.header)
    lines += [f"<tr>{header}</tr>", "</thead>", "<tbody>"]
    name = _HTML.code if table.coded else escape
    for called, cells in table.rows:
        said = ("<br>".join(_HTML.said(line, coded=table.coded) for line in cell) for cell in cells)
        lines.append(f'<tr><th scope="row">{name(called)}</th>{"".join(f"<td>{text}</td>" for text in said)}</tr>')
    lines += ["</tbody>", "</table>"]
    if table.legend:
        lines.append(f"<p>{', '.join(f'{_HTML.code(code)} {escape(meaning)}' for code, meaning in table.legend)}.</p>")
    return "\n".join(lines) + "\n"


def csv_table(edition: str = "caffe", *, calls: Collection[Call] = (), detail: Detail = Detail.GUARDS) -> str:
    """The table in long form as CSV, a row per transition, or with ``CONFIGURATIONS`` a row per cell.

    Lists are separated by blanks.  Parameters and errors are those of `table_of`, but that heads and guards are
    the same here.
    """
    rows = _cells(edition, calls) if detail is Detail.CONFIGURATIONS else _transitions(edition, calls)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _transitions(edition: str, calls: Collection[Call]) -> Iterable[tuple[str, ...]]:
    yield ("id", "call", "head", "guards", "actions", "next", "flags", "refusal", "cite")
    machine = head_machine(edition)
    for row in machine.declaration.rows:
        flags = "; ".join(flag_changes(row.actions, machine.edition.flags))
        for head in row.source:
            if not calls or row.call in calls:
                yield (row.identifier(head), row.call.value, head.name, *_does(row), flags, *_refused(row))


def _does(row: Transition) -> tuple[str, str, str]:
    actions = " ".join(action.value for action in row.actions)
    return " ".join(guards_of(row, data=True)), actions, row.dest.name if row.dest else ""


def _refused(row: Transition) -> tuple[str, str]:
    return row.refusal.value if row.refusal else "", row.cite


def _cells(edition: str, calls: Collection[Call]) -> Iterable[tuple[str, ...]]:
    yield ("configuration", "call", "actions", "next", "flags", "refusal")
    flags = head_machine(edition).edition.flags
    for before, row in matrix(edition).items():
        for asked, entry in row.items():
            if not calls or asked.call in calls:
                actions = " ".join(action.value for action in entry.actions)
                refusal = entry.refusal.value if entry.refusal else ""
                yield (str(before), str(asked), actions, str(entry.after), _flags(entry.after.facts & flags), refusal)


def _flags(facts: Fact) -> str:
    return " ".join(fact.name.lower() for fact in type(facts) if fact in facts and fact.name)
