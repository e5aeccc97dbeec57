"""A machine whose names have every letter that means something to some format, in the programs that read it."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from machines import DOOR, KEYWORDS, ODD
from markdown import markdown
from markdown_it import MarkdownIt
from programs import program, typeset

from syncedmem.model import DeclarationError, Machine, Row
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.exports.code_names import code_names
from syncedmem.model.exports.formats import export
from syncedmem.model.states import space

if TYPE_CHECKING:
    from pathlib import Path

HEADS = [*ODD.heads]


def flat(text: str) -> str:
    """Return a text without what separates its words: drawings wrap lines."""
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("word", ["two\nlines", "\x1b[31m"])
def test_a_word_that_cannot_be_written_on_a_line_is_refused(word: str) -> None:
    with pytest.raises(DeclarationError, match="cannot be written on a line"):
        Machine("odd", [Row("go", word, "B"), Row("go", "B", word)])


@pytest.mark.parametrize("format_", ["c", "rust", "tla", "promela"])
def test_formats_whose_words_are_names_say_what_stands_for_others(format_: str) -> None:
    assert "start_here stands for: start here" in str(export(format_, edition=ODD))


@pytest.mark.parametrize("machine", [ODD, KEYWORDS, DOOR], ids=str)
def test_no_two_names_in_code_are_alike_and_the_machine_is_the_same(machine: Machine) -> None:
    """Compilers try the formats in the deep tests."""
    named, renamed = code_names(machine)
    names = [*named.heads, *named.calls, *named.actions, *named.facts]
    assert len(names) == len({name.lower() for name in names})
    assert all(name.isascii() and name.isidentifier() for name in names)
    assert {*dict(renamed).values()} >= {*machine.heads} - {*named.heads}
    assert len(names) == sum(map(len, (machine.heads, machine.calls, machine.actions, machine.facts)))
    assert len(space(machine).steps) == len(space(named).steps)


def test_a_selection_has_the_names_of_the_machine_from_which_it_is() -> None:
    part = KEYWORDS.select("part", without="rows")
    assert {*code_names(part).machine.calls} < {*code_names(KEYWORDS).machine.calls}


def test_pictures_and_pages_are_well_formed_and_show_every_name() -> None:
    texts = " ".join(ET.fromstring(str(export("svg", edition=ODD))).itertext())  # noqa: S314 -- our own
    table = ET.fromstring(str(export("html", edition=ODD)))  # noqa: S314
    for head in HEADS:
        assert flat(head) in flat(texts)
        assert any(head in (cell.text or "") for cell in table.iter())
    text = re.sub(
        r"`[^`]*`",
        "",
        str(export("markdown", edition=ODD)) + str(export("markdown", edition=ODD, detail=Detail.CONFIGURATIONS)),
    )
    assert "<script>" not in text


@pytest.mark.deep
def test_latex_sets_every_name(tmp_path: Path) -> None:
    names = [head for head in HEADS if head.isascii()]
    machine = Machine(
        "odd",
        [Row(f"to {head}", head, names[0], do=f"do {head}") for head in names]
        + [Row("on", a, b) for a, b in pairwise(names)],
    )
    assert typeset(tmp_path, str(export("latex", edition=machine, detail=Detail.HEADS)))


def cells_of(page: str) -> set[str]:
    """The texts of the cells of a table in HTML."""
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", page, re.DOTALL)
    assert not [cell for cell in cells if re.search(r"<(?!br|/?code|/?strong)", cell)]
    return {unescape(re.sub(r"<.*?>", "", cell)) for cell in cells}


@pytest.mark.parametrize("of", ["GitHub", "MkDocs"])
def test_markdown_shows_every_name(of: str) -> None:
    """As the rules of CommonMark and Python-Markdown read it; GitHub has strikethrough and formulas besides."""
    names = ["[e](f)", "![e](f)", "~~x~~", "$y$", "<b>", "a|b", "*c*", "_d_", "__e__", "`f`", "&lt;", "a_b_c"]
    machine = Machine("odd", [Row(f"to {b}", a, b) for a, b in pairwise([*names, names[0]])])
    text = str(export("markdown", edition=machine))
    if of == "GitHub":
        page = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    else:
        page = markdown(text, extensions=["tables"])
    assert {f"to {name}" for name in names} <= cells_of(page)
    assert "$" not in text


_INK = ["<<<->>>", "a--b---c", "``say'' ,,so''", "?`no!`", "x<y>z", "it's"]
"""Letters of which TeX makes others, in one encoding or in both."""


@pytest.mark.deep
@pytest.mark.parametrize("encoding", ["OT1", "T1"])
def test_latex_changes_no_letter(encoding: str, tmp_path: Path) -> None:
    """What is set has the same codes as the text, in which a quote of TeX is that of ASCII."""
    rows = [Row("go", "A", "B", do=ink) for ink in _INK]
    machine = Machine("ink", [*rows[:1], *(Row(f"go{k}", "A", "B", do=ink) for k, ink in enumerate(_INK[1:]))])
    table = str(export("latex", edition=machine, detail=Detail.HEADS))
    (tmp_path / "page.tex").write_text(
        "\\documentclass[a3paper,landscape]{article}\\usepackage[margin=1cm]{geometry}\\usepackage{tabularx}\n"
        f"\\usepackage[{encoding}]{{fontenc}}\\begin{{document}}\\pagestyle{{empty}}\n{table}\n\\end{{document}}\n"
    )
    subprocess.run(
        [program("latex"), "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    read = subprocess.run([program("dvitype"), "page.dvi"], cwd=tmp_path, capture_output=True, text=True, check=False)
    shown = "".join(chr(int(code)) for code in re.findall(r"setchar(\d+)", read.stdout))
    assert [] == [ink for ink in _INK if flat(ink) not in shown]


@pytest.mark.deep
def test_latex_breaks_long_words(tmp_path: Path) -> None:
    rows = [Row("go", "A", f"cudaStreamCaptureStatusInvalidated{k}") for k in range(1)]
    rows += [Row("back", "cudaStreamCaptureStatusInvalidated0", "A", do="EncryptedExtensions")]
    table = str(export("latex", edition=Machine("long", rows), detail=Detail.HEADS))
    assert "Overfull" not in typeset(tmp_path, f"\\begin{{minipage}}{{45mm}}\n{table}\\end{{minipage}}", size="small")
