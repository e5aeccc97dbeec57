"""The page of a report, from its data: a template of Jinja2, which is in ``templates``."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from syncedmem.spec.engine.report import Status, overall

from .glossary import MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .document import Document

__all__ = ["rendered"]

_VERDICTS: Mapping[str, str] = {"passed": "✓", "failed": "✗", "incomplete": "◐"}


_ORDER = get_args(Status)


def rendered(document: Document) -> str:
    """The page of a report."""
    drawn = [(it.title, Markup(it.svg)) for it in document.figures]  # noqa: S704 -- drawings are our own
    text: str = _template().render(**document.as_json(), figures=drawn)
    return text


@cache
def _template() -> Any:  # noqa: ANN401 -- a template of Jinja2
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": _number, "runs": _runs, "term": _term}
    names: dict[str, Any] = {"MARKS": MARKS, "VERDICTS": _VERDICTS, "counted": _counted}
    made.globals |= names
    return made.get_template("page.html.jinja")


def _number(value: Any) -> str:  # noqa: ANN401 -- of JSON
    """A number as people write it; a text as it is."""
    if isinstance(value, str):
        return value
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _runs(seeds: list[int]) -> str:
    """Numbers that follow each other as a range."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1][1:] = [seed]
        else:
            runs.append([seed])
    return ", ".join(" to ".join(map(str, run)) for run in runs)


def _term(text: str) -> str:
    """The anchor of a term in the glossary."""
    return "term-" + re.sub(r"\W+", "-", text)


def _counted(rows: list[dict[str, Any]]) -> str:
    """How many requirements of a table have each status, the worst first; a requirement counts once."""
    worst = Counter(overall(row["statuses"].values()) for row in rows)
    return ", ".join(f"{worst[status]} {status}" for status in sorted(worst, key=_ORDER.index))
