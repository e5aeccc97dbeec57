"""The machine as tables in Markdown, HTML, LaTeX, and reStructuredText for Sphinx: head or configuration by call."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from ..caffe import DEFAULT
from ..diagrams.drawing import Detail, guards_of, is_conditional, steps_of
from ..opening import machine_of
from ..states import matrix, stepper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ..declaration import Machine
    from ..moves import Effect, Input, Move
    from ..opening import AnyCall, AnyMachine
    from ..states import Configuration

__all__ = [
    "CellLine",
    "Markup",
    "TextTable",
    "flag_changes",
    "html_table",
    "latex_table",
    "markdown_table",
    "rst_table",
    "table_of",
]


class CellLine(NamedTuple):
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


class TextTable(NamedTuple):
    """A table with a name before every row.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of (str, tuple of cells)
        A cell is a tuple of `CellLine`.
    legend : tuple of (str, str)
        The codes that are used, and their meanings.
    coded : bool
        Whether names of rows, steps and ends are codes.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[CellLine, ...], ...]], ...]
    legend: tuple[tuple[str, str], ...]
    coded: bool


def table_of(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.GUARDS
) -> TextTable:
    """The table of an edition.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Show only these calls; if empty, all calls.
    detail : Detail
        ``HEADS`` and ``GUARDS``: a row per call and a column per head.  Rows of the machine that differ only in
        their guards are one line of a cell (``HEADS``) or a line each (``GUARDS``).  ``CONFIGURATIONS``: a row per
        reachable configuration and a column per call, NULL data included.
    """
    machine, names = machine_of(edition), [*map(str, calls)]
    if detail is Detail.CONFIGURATIONS:
        return _configuration_table(machine, names)
    return _head_table(machine, names, merged=detail is Detail.HEADS)


def _head_table(machine: Machine, calls: Collection[str], *, merged: bool) -> TextTable:
    lines, effects_at = _merged if merged else _apart, stepper(machine).effects_at
    rows = tuple(
        (call, tuple(lines(machine, effects_at.get((call, head), ())) for head in machine.heads))
        for call in machine.calls
        if not calls or call in calls
    )
    return TextTable(("call", *machine.heads), rows, (), coded=False)


def _apart(machine: Machine, effects: tuple[Effect, ...]) -> tuple[CellLine, ...]:
    return tuple(_line(machine, effect, ", ".join(effect.row.actions)) for effect in effects)


def _line(machine: Machine, effect: Effect, steps: str) -> CellLine:
    row = effect.row
    guards = guards_of(machine, row, data=True)
    if row.refusal:
        return CellLine(guards, "", (), row.refusal, refused=True)
    end = "the end" if machine.calls[row.call].ends else effect.dest
    return CellLine(guards, steps or "nothing", flag_changes(machine, effect), end, refused=False)


def _merged(machine: Machine, effects: tuple[Effect, ...]) -> tuple[CellLine, ...]:
    acting = [effect for effect in effects if not effect.row.refusal]
    refused = [_line(machine, effect, "") for effect in effects if effect.row.refusal]
    dests = dict.fromkeys(move.dest for move in acting)
    if len(dests) > 1 or (acting and is_conditional(machine, acting[0].head, [move.row for move in acting])):
        done = [_line(machine, move, steps_of(machine, [move.row])) for move in acting]
    else:
        steps = steps_of(machine, [move.row for move in acting])
        done = [_line(machine, acting[0], steps)._replace(guards=()) for _ in dests]
    return (*refused, *(line._replace(flags=()) for line in done))


def flag_changes(machine: Machine, effect: Effect) -> tuple[str, ...]:
    """What a row does to the flags."""
    flags = {flag.name for flag in machine.flags}
    changes = [(fact, value) for fact, value in effect.changes.items() if fact in flags]
    return tuple(
        f"{'+' if value else '-'}{fact}" if isinstance(value, bool) else f"{fact} by {value.setting}"
        for fact, value in changes
    )


def _configuration_table(machine: Machine, calls: Collection[str]) -> TextTable:
    asked = stepper(machine).inputs(settings=False)
    shown = [entry for entry in asked if entry.call and (not calls or entry.call.name in calls)]
    cells = matrix(machine)
    rows = tuple(
        (str(before), tuple((_coded_line(machine, row[entry]),) if entry in row else () for entry in shown))
        for before, row in cells.items()
    )
    used = {action for row in cells.values() for entry in shown if entry in row for action in row[entry].actions}
    legend = tuple((word.code, name) for name, word in machine.actions.items() if name in used and word.code)
    return TextTable(("configuration", *_columns(shown)), rows, legend, coded=True)


def _columns(shown: list[Input]) -> Iterator[str]:
    """The inputs, each with the conditions that the caller decides, true or not."""
    tested = {entry.call: entry.given for entry in sorted(shown, key=lambda entry: len(entry.given))}
    for entry in shown:
        stated = (fact if fact in entry.given else f"!{fact}" for fact in tested[entry.call])
        yield str(replace(entry, given=tuple(stated)))


def _coded_line(machine: Machine, move: Move[Configuration]) -> CellLine:
    steps = " ".join(machine.actions[action].code or action for action in move.actions)
    return CellLine((), steps, (), move.refusal or str(move.after), refused=bool(move.refusal))


class Markup(NamedTuple):
    """The markup of code, of strong text and of other text."""

    code: Callable[[str], str]
    strong: Callable[[str], str]
    plain: Callable[[str], str]
    arrow: str = "→ "

    def rows(self, table: TextTable) -> Iterator[tuple[str, list[list[str]]]]:
        """The name of each row, and the lines of each of its cells."""
        name = self.code if table.coded else self.plain
        for called, cells in table.rows:
            yield name(called), [[self.said(line, coded=table.coded) for line in cell] for cell in cells]

    def legend(self, table: TextTable) -> str:
        """The codes that are used with their meanings; empty if there are none."""
        return ", ".join(f"{self.code(code)} {self.plain(meaning)}" for code, meaning in table.legend)

    def said(self, line: CellLine, *, coded: bool) -> str:
        """A line of a cell."""
        guards = ", ".join(line.guards)
        asked = f"{self.code(f'[{guards}]')} " if guards else ""
        if line.refused:
            return asked + self.strong(f"refused: {line.end}")
        # In code spans, because otherwise the asterisk of a code would start emphasis.
        code = self.code if coded else self.plain
        steps = f"{code(line.steps)} " if line.steps else ""
        flags = f" ({self.plain(', '.join(line.flags))})" if line.flags else ""
        return f"{asked}{steps}{self.arrow}{code(line.end)}{flags}"


_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "~": "&#126;", "$": "&#36;"})
"""What some programs that read Markdown do not take with a backslash before it."""


def _markdown(text: str) -> str:
    """A text whose letters mean nothing to Markdown, and are no tags."""
    plain = re.sub(r"[\\`*|[]|(?<!\w)_|_(?!\w)|_(?=_)|(?<=_)_", r"\\\g<0>", text)
    return plain.translate(_ENTITIES)


def _markdown_code(text: str) -> str:
    """A text as code, in a table."""
    return "`{}`".format(text.replace("`", "'").replace("|", "\\|"))


def _markdown_strong(text: str) -> str:
    return f"**{_markdown(text)}**"


_MARKDOWN = Markup(_markdown_code, _markdown_strong, _markdown)


def markdown_table(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.GUARDS
) -> str:
    """A table in Markdown; by default, head by call: the effect of each call in each head, and the next head.

    Refusals are in bold, the destructor leads to no head, and changed flags are in brackets.  `table_of` documents
    the parameters and the errors.

    Returns
    -------
    str
        The table with a newline at the end, and with a legend if it has codes.
    """
    table = table_of(edition, calls=calls, detail=detail)
    rows = [[name, *map("<br>".join, cells)] for name, cells in _MARKDOWN.rows(table)]
    lines = [[*map(_MARKDOWN.plain, table.header)], ["---"] * len(table.header), *rows]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{text}\n{legend}.\n" if (legend := _MARKDOWN.legend(table)) else text


def _rst(text: str) -> str:
    """A text whose letters mean nothing to reStructuredText."""
    return re.sub(r"[\\`*|]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)


def _rst_strong(text: str) -> str:
    return f"**{_rst(text)}**"


_RST = Markup("``{}``".format, _rst_strong, _rst)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _strong(text: str) -> str:
    return f"<strong>{escape(text)}</strong>"


_HTML = Markup(_code, _strong, escape)


def rst_table(edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.GUARDS) -> str:
    """A table as a ``list-table`` of reStructuredText; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail)
    lines = [".. list-table::", "   :header-rows: 1", "   :stub-columns: 1", ""]
    lines += _rst_row([[_RST.plain(text)] for text in table.header])
    for name, cells in _RST.rows(table):
        lines += _rst_row([[name], *cells])
    if table.legend:
        lines += ["", f"{_RST.legend(table)}."]
    return "\n".join(lines) + "\n"


def _rst_row(cells: list[list[str]]) -> list[str]:
    """The cells of a row; a cell of several lines is a line block."""
    lines: list[str] = []
    for number, cell in enumerate(cells):
        first, *others = [f"| {text}" for text in cell] if len(cell) > 1 else cell or [""]
        lines.append(f"   {' ' if number else '*'} - {first}".rstrip())
        lines += [f"       {text}" for text in others]
    return lines


def html_table(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.GUARDS
) -> str:
    """A table as an HTML element with a caption and scopes; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail)
    lines = ["<table>", f"<caption>{escape(machine_of(edition).title)}</caption>", "<thead>"]
    header = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.header)
    lines += [f"<tr>{header}</tr>", "</thead>", "<tbody>"]
    for name, cells in _HTML.rows(table):
        columns = "".join(f"<td>{'<br>'.join(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{name}</th>{columns}</tr>')
    lines += ["</tbody>", "</table>"]
    if table.legend:
        lines.append(f"<p>{_HTML.legend(table)}.</p>")
    return "\n".join(lines) + "\n"


_TEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#{}_"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "|": "\\textbar{}",
        '"': "\\texttt{\\char34}",
    }
)
"""What has a meaning in TeX, or is another letter in one of its encodings."""


def _tex(text: str) -> str:
    # A place to break keeps two letters apart that would become one, such as two hyphens.
    return re.sub(r"([-`',?!])(?=[-`',])", r"\1\\allowbreak", text.translate(_TEX))


def _tex_code(text: str) -> str:
    return f"\\texttt{{{_tex(text)}}}"


def _tex_strong(text: str) -> str:
    return f"\\textbf{{{_tex(text)}}}"


_LATEX = Markup(_tex_code, _tex_strong, _tex, arrow="$\\to$~")


def latex_table(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.GUARDS
) -> str:
    """A table as a ``tabularx`` of LaTeX, as wide as the text; parameters and errors are those of `table_of`."""
    table = table_of(edition, calls=calls, detail=detail)
    columns = f"l*{{{len(table.header) - 1}}}{{>{{\\raggedright\\arraybackslash\\hspace{{0pt}}}}X}}"
    lines = [
        f"% {machine_of(edition).title}. In the preamble: \\usepackage{{tabularx}}",
        # Long names may be broken after an underscore and hyphenated after a space, so that no cell sticks out.
        "{\\let\\plainunderscore\\_\\def\\_{\\plainunderscore\\hspace{0pt}}%",
        f"\\noindent\\begin{{tabularx}}{{\\linewidth}}{{{columns}}}",
        "\\hline",
        " & ".join(_tex(text).replace("(", "\\allowbreak(") for text in table.header) + " \\\\ \\hline",
    ]
    for name, cells in _LATEX.rows(table):
        lines.append(" & ".join((name, *map(" \\newline ".join, cells))) + " \\\\[2pt]")
    lines += ["\\hline", "\\end{tabularx}"]
    if table.legend:
        lines += ["", f"{_LATEX.legend(table)}."]
    lines.append("}")
    return "\n".join(lines) + "\n"
