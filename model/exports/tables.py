"""The machine as two tables in Markdown, reStructuredText, HTML and CSV: head by call, and configuration by call."""

from __future__ import annotations

import csv
import io
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from ..compiled import head_machine
from ..diagrams.drawing import Detail, effect, guards_of, title_of
from ..diagrams.labels import PLAIN, Labels
from ..exploration import firing, inputs, matrix
from ..head import DEFAULT_EDITION, Action, Call, Edition, Fact, SyncedHead, Transition
from ..vocabulary import code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ..exploration import Entry
    from ..machine import AnyEdition

__all__ = [
    "Line",
    "Markup",
    "Table",
    "csv_table",
    "flag_changes",
    "html_table",
    "markdown_matrix",
    "markdown_table",
    "rst_table",
    "table_of",
]


class Line(NamedTuple):
    """One line of a cell.

    Attributes
    ----------
    guards : tuple of str
        The guards that must hold; those with an exclamation mark must not hold.
    steps : str
        The actions in order, as words or as codes.
    flags : tuple of str
        The flags that it sets (``+``), clears (``-``), or sets by the mode (``by mode``).
    end : str
        The head or the configuration afterwards, ``the end``, or the refusal.
    refused : bool
    """

    guards: tuple[str, ...]
    steps: str
    flags: tuple[str, ...]
    end: str
    refused: bool


class Table(NamedTuple):
    """A table with a name before every row.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of (str, tuple of cells)
        A cell is a tuple of `Line`.
    legend : tuple of (str, str)
        The codes that are used, and their meanings.
    coded : bool
        Whether names of rows, steps and ends are codes.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Line, ...], ...]], ...]
    legend: tuple[tuple[str, str], ...]
    coded: bool


def table_of(
    edition: AnyEdition = DEFAULT_EDITION,
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.GUARDS,
    labels: Labels = PLAIN,
) -> Table:
    """The table of an edition.

    Parameters
    ----------
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    calls : collection of Call
        Show only these calls; if empty, all calls.
    detail : Detail
        ``HEADS`` and ``GUARDS``: a row per call and a column per head.  Rows of the machine that never apply are
        left out.  Those that differ only in their guards are one line of a cell (``HEADS``) or a line each
        (``GUARDS``).  ``CONFIGURATIONS``: a row per reachable configuration and a column per call, NULL data included.
    labels : Labels
        Texts instead of names; configurations are codes and have none.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    if detail is Detail.CONFIGURATIONS:
        return _configuration_table(edition, calls)
    return _head_table(edition, calls, labels, merged=detail is Detail.HEADS)


def _head_table(edition: AnyEdition, calls: Collection[Call], labels: Labels, *, merged: bool) -> Table:
    machine = head_machine(edition)
    cells: dict[tuple[Call, SyncedHead], list[Transition]] = {}
    for row in firing(edition):
        for head in row.source:
            cells.setdefault((row.call, head), []).append(row)
    heads = machine.edition.heads
    lines = _merged if merged else _apart
    rows = tuple(
        (labels.of(call.value), tuple(lines(cells[call, head], machine.edition, labels) for head in heads))
        for call in machine.calls
        if not calls or call in calls
    )
    return Table(("call", *(labels.of(head.name) for head in heads)), rows, (), coded=False)


def _apart(rows: list[Transition], edition: Edition, labels: Labels) -> tuple[Line, ...]:
    return tuple(
        _line(row, ", ".join(labels.of(action.value) for action in row.actions), edition, labels) for row in rows
    )


def _line(row: Transition, steps: str, edition: Edition, labels: Labels) -> Line:
    guards = guards_of(row, labels, data=True)
    if row.refusal is not None:
        return Line(guards, "", (), labels.of(row.refusal.value), refused=True)
    end = labels.of(row.dest.name) if row.dest else "the end"
    return Line(guards, steps or "nothing", flag_changes(row.actions, edition, labels), end, refused=False)


def _merged(rows: list[Transition], edition: Edition, labels: Labels) -> tuple[Line, ...]:
    acting = [row for row in rows if row.refusal is None]
    refused = [_line(row, "", edition, labels) for row in rows if row.refusal is not None]
    done = [_line(acting[0], effect(acting, labels), edition, labels)._replace(guards=(), flags=())] if acting else []
    return (*refused, *done)


def flag_changes(actions: Iterable[Action], edition: Edition, labels: Labels = PLAIN) -> tuple[str, ...]:
    """The changes of an edition's flags by these actions; if two actions change the same flag, the later change."""
    found: dict[str, str] = {}
    for action in actions:
        change = edition.names.effects[action]
        for facts, text in ((change.sets, "+{}"), (change.clears, "-{}"), (change.by_mode, "{} by mode")):
            found.update((fact.name or "", text) for fact in edition.names.facts if fact in facts & edition.flags)
    return tuple(text.format(labels.of(name.lower())) for name, text in found.items())


def _configuration_table(edition: AnyEdition, calls: Collection[Call]) -> Table:
    shown = [asked for asked in inputs(edition, null=True, mode=False) if not calls or asked.call in calls]
    found = matrix(edition)
    rows = tuple((str(before), tuple((_entry(row[asked]),) for asked in shown)) for before, row in found.items())
    used = {action for row in found.values() for asked in shown for action in row[asked].actions}
    legend = tuple((code_of(action), action.value) for action in Action if action in used)
    return Table(("configuration", *map(str, shown)), rows, legend, coded=True)


def _entry(entry: Entry) -> Line:
    steps = " ".join(code_of(action) for action in entry.actions)
    end = str(entry.after) if entry.refusal is None else entry.refusal.value
    return Line((), steps, (), end, refused=entry.refusal is not None)


class Markup(NamedTuple):
    """The markup of code and of strong text."""

    code: Callable[[str], str]
    strong: Callable[[str], str]

    def said(self, line: Line, *, coded: bool) -> str:
        """A line of a cell."""
        guards = ", ".join(line.guards)
        asked = f"{self.code(f'[{guards}]')} " if guards else ""
        if line.refused:
            return asked + self.strong(f"refused: {line.end}")
        # In code spans, because otherwise the asterisk of a code would start emphasis.
        code = self.code if coded else str
        steps = f"{code(line.steps)} " if line.steps else ""
        flags = f" ({', '.join(line.flags)})" if line.flags else ""
        return f"{asked}{steps}→ {code(line.end)}{flags}"


_MARKDOWN = Markup("`{}`".format, "**{}**".format)


def markdown_table(
    edition: AnyEdition = DEFAULT_EDITION,
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.GUARDS,
    labels: Labels = PLAIN,
) -> str:
    """A table in Markdown; by default, head by call: the effect of each call in each head, and the next head.

    Refusals are in bold, the destructor leads to no head, and changed flags are in brackets.  `table_of` documents
    the parameters and the errors.

    Returns
    -------
    str
        The table with a newline at the end, and with a legend if it has codes.
    """
    table = table_of(edition, calls=calls, detail=detail, labels=labels)
    name = _MARKDOWN.code if table.coded else str
    rows = [
        [name(called), *("<br>".join(_MARKDOWN.said(line, coded=table.coded) for line in cell) for cell in cells)]
        for called, cells in table.rows
    ]
    lines = [list(table.header), ["---"] * len(table.header), *rows]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    legend = ", ".join(f"{_MARKDOWN.code(code)} {meaning}" for code, meaning in table.legend)
    return f"{text}\n{legend}.\n" if legend else text


def markdown_matrix(edition: AnyEdition = DEFAULT_EDITION) -> str:
    """The matrix of configurations and calls in Markdown, with a legend of its codes."""
    return markdown_table(edition, detail=Detail.CONFIGURATIONS)


_RST = Markup("``{}``".format, "**{}**".format)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _strong(text: str) -> str:
    return f"<strong>{escape(text)}</strong>"


_HTML = Markup(_code, _strong)


def rst_table(
    edition: AnyEdition = DEFAULT_EDITION,
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.GUARDS,
    labels: Labels = PLAIN,
) -> str:
    """A table as a ``list-table`` of reStructuredText; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail, labels=labels)
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
    """The cells of a row; a cell of several lines is a line block."""
    lines: list[str] = []
    for number, cell in enumerate(cells):
        first, *others = [f"| {text}" for text in cell] if len(cell) > 1 else cell
        lines.append(f"   {' ' if number else '*'} - {first}")
        lines += [f"       {text}" for text in others]
    return lines


def html_table(
    edition: AnyEdition = DEFAULT_EDITION,
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.GUARDS,
    labels: Labels = PLAIN,
) -> str:
    """A table as an HTML element with a caption and scopes; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail, labels=labels)
    lines = ["<table>", f"<caption>{escape(title_of(edition))}</caption>", "<thead>"]
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


def csv_table(
    edition: AnyEdition = DEFAULT_EDITION, *, calls: Collection[Call] = (), detail: Detail = Detail.GUARDS
) -> str:
    """The table in long form as CSV, a row per transition, or with ``CONFIGURATIONS`` a row per cell.

    Lists are separated by blanks.  Parameters and errors are those of `table_of`, but here ``HEADS`` and ``GUARDS``
    give the same table.
    """
    rows = _cells(edition, calls) if detail is Detail.CONFIGURATIONS else _transitions(edition, calls)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _transitions(edition: AnyEdition, calls: Collection[Call]) -> Iterable[tuple[str, ...]]:
    yield ("id", "call", "head", "guards", "actions", "next", "flags", "refusal", "cite")
    machine = head_machine(edition)
    for row in machine.declaration.rows:
        flags = "; ".join(flag_changes(row.actions, machine.edition))
        for head in row.source:
            if not calls or row.call in calls:
                yield (row.identifier(head), row.call.value, head.name, *_does(row), flags, *_refused(row))


def _does(row: Transition) -> tuple[str, str, str]:
    actions = " ".join(action.value for action in row.actions)
    return " ".join(guards_of(row, data=True)), actions, row.dest.name if row.dest else ""


def _refused(row: Transition) -> tuple[str, str]:
    return row.refusal.value if row.refusal else "", row.cite


def _cells(edition: AnyEdition, calls: Collection[Call]) -> Iterable[tuple[str, ...]]:
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
