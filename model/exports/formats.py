"""The one registry of formats: the description, the options and the writer of each.

A format without a writer is written from its template, ``templates/NAME.EXTENSION.jinja``.
"""

from __future__ import annotations

from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..caffe import DEFAULT
from ..diagrams.diagram import diagram_svg
from ..diagrams.drawing import Detail
from ..errors import InvalidExportError, MissingPackageError, listed
from ..opening import machine_of
from .document import machine_json
from .graphviz import dot
from .mermaid import mermaid
from .pictures import pdf_picture, png_picture
from .tables import html_table, latex_table, markdown_table
from .text import text_diagram
from .xstate import xstate_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ..declaration import Machine
    from ..diagrams.drawing import Direction
    from ..diagrams.palette import Theme
    from ..diagrams.trace import Trace
    from ..opening import AnyCall, AnyMachine

__all__ = ["ENDINGS", "FORMATS", "Format", "export", "format_of", "tla_config"]

_ALL = tuple(Detail)


class Format(NamedTuple):
    """A format.

    Attributes
    ----------
    about : str
        A description that helps to choose.
    extension : str
        The extension of its files; the first format with an extension is the default for it.
    write : callable or None
        Takes the edition, and the options by name; returns text or bytes.  If None, a template is used.
    details : tuple of Detail
        The details that it supports, its default first; empty if it has no choice of detail.
    calls, trace, theme, direction : bool
        Whether it can show a choice of calls, can show a trace, has colours, and can lead to the right.
    every : bool
        Whether it exports every edition if none is named.
    also : tuple of str
        Other extensions.
    """

    about: str
    extension: str
    write: Callable[..., str | bytes] | None = None
    details: tuple[Detail, ...] = ()
    calls: bool = False
    trace: bool = False
    theme: bool = False
    direction: bool = False
    every: bool = False
    also: tuple[str, ...] = ()


_TABLES = (Detail.GUARDS, Detail.HEADS, Detail.CONFIGURATIONS)
_PICTURE: dict[str, Any] = {"calls": True, "trace": True, "theme": True, "direction": True}
_CHARTS = (Detail.CONFIGURATIONS, Detail.GUARDS)

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "mermaid": Format(
            "state diagram, which GitHub draws in Markdown",
            "mmd",
            mermaid,
            _ALL,
            calls=True,
            direction=True,
            also=("mermaid", "md"),
        ),
        "dot": Format("state diagram for Graphviz", "dot", dot, _ALL, calls=True, direction=True, also=("gv",)),
        "svg": Format("state diagram as a picture", "svg", diagram_svg, _ALL, **_PICTURE),
        "png": Format("picture in pixels", "png", png_picture, _ALL, **_PICTURE),
        "pdf": Format("picture for print", "pdf", pdf_picture, _ALL, **_PICTURE),
        "text": Format(
            "state diagram as plain text, for terminals and logs", "txt", text_diagram, _ALL, calls=True, trace=True
        ),
        "plantuml": Format("state diagram for PlantUML", "puml", details=_ALL, calls=True, direction=True),
        "markdown": Format("table of calls in Markdown", "md", markdown_table, _TABLES, calls=True),
        "html": Format("table of calls in HTML", "html", html_table, _TABLES, calls=True),
        "latex": Format("table of calls in LaTeX", "tex", latex_table, _TABLES, calls=True),
        "json": Format("machine as data, with all editions or one", "json", machine_json, every=True),
        # The default runs as it is; with guards there are names to implement.
        "xstate": Format("configuration of XState", "json", xstate_json, _CHARTS, calls=True),
        "c": Format("C header", "h"),
        "port-header": Format("C header for ports that `syncedmem conform` tests, the same for all editions", "h"),
        "rust": Format("Rust module", "rs"),
        "tla": Format("TLA+ module with invariants; -o X.tla also writes X.cfg for its checker", "tla"),
        "promela": Format("model for SPIN with invariants", "pml"),
    }
)


def _endings() -> Mapping[str, tuple[str, ...]]:
    endings: dict[str, tuple[str, ...]] = {}
    for ending, name in (
        *((kind.extension, name) for name, kind in FORMATS.items()),
        *((ending, name) for name, kind in FORMATS.items() for ending in kind.also),
    ):
        endings[f".{ending}"] = (*endings.get(f".{ending}", ()), name)
    return MappingProxyType(endings)


ENDINGS = _endings()
"""The endings of file names, with the formats of each; the first format is the default."""


def format_of(name: str, asked: str | None = None) -> str:
    """The format for a file with this name.

    Parameters
    ----------
    name : str
    asked : str, optional
        The requested format.  If None, the ending decides; without an ending the format is ``mermaid``.
    """
    ending = PurePath(name).suffix.lower()
    known = ENDINGS.get(ending, ())
    if asked is not None:
        if known and asked in FORMATS and asked not in known:
            raise InvalidExportError(
                f"--format is {asked}, but {name} is for {', '.join(known)}: give only one of the two"
            )
        return asked
    if ending and not known:
        unknown = InvalidExportError.unknown("ending", ending, ENDINGS)
        raise InvalidExportError(f"{unknown}; or name the format: --format, one of {', '.join(FORMATS)}")
    return known[0] if known else "mermaid"


def export(  # noqa: PLR0913 -- the options of all formats
    format_: str,
    *,
    edition: AnyMachine | None = None,
    calls: Collection[AnyCall] = (),
    detail: Detail | None = None,
    trace: Trace | None = None,
    theme: Theme | None = None,
    direction: Direction | None = None,
) -> str | bytes:
    """The machine in one of the ``FORMATS``.

    Parameters
    ----------
    format_ : str
        A name from ``FORMATS``.
    edition : str or Machine, optional
        A name from ``EDITIONS``, or any machine; the default is ``caffe``, and for ``json`` all editions.
    calls : collection of str or Call
        Show only these calls; if empty, all calls.  They must include those of the trace.
    detail : Detail, optional
        What to distinguish; each format has a default.
    trace : Trace, optional
        A walk to draw.
    theme : Theme, optional
        Light, dark, or automatic (the default): as the reader's system is set, and light if it cannot be asked.
    direction : Direction, optional
        Where the drawing leads: down (the default), or to the right.

    Returns
    -------
    str or bytes
        Text that ends in a newline, or for ``png`` and ``pdf`` bytes.

    Raises
    ------
    InvalidExportError
        If there is no such format, it lacks a requested option, or the edition has no such call.
    DeclarationError
        If there is no such edition.
    MissingPackageError
        If the format is a template and Jinja2 is not installed, or a picture and CairoSVG is not.
    """
    if format_ not in FORMATS:
        raise InvalidExportError.unknown("format", format_, FORMATS)
    chosen = FORMATS[format_]
    options: dict[str, Any] = {}
    names = tuple(map(str, calls))
    if names:
        options["calls"] = _had("calls", format_, "a choice of calls", names)
        _check_calls(format_, machine_of(edition or DEFAULT), names, trace)
    for what, value in (("trace", trace), ("theme", theme), ("direction", direction)):
        if value is not None:
            options[what] = _had(what, format_, f"a {what}", value)
    if detail is not None and detail not in chosen.details:
        had = f"it has {', '.join(chosen.details)}" if chosen.details else "it has no details"
        raise InvalidExportError(f"the format {format_} has no detail {detail}; {had}")
    if detail is not None:
        options["detail"] = detail
    if chosen.write is None:
        template, shown = (
            f"{format_}.{chosen.extension}.jinja",
            detail or (chosen.details[0] if chosen.details else None),
        )
        return _rendered(format_, template, edition or DEFAULT.name, calls=names, detail=shown, direction=direction)
    if edition is None and chosen.every:
        return chosen.write()
    return chosen.write(edition or DEFAULT.name, **options)


def tla_config(edition: AnyMachine = DEFAULT) -> str:
    """The configuration that TLC needs to check the module of the format ``tla``; errors are those of `export`."""
    return _rendered("tla", "tla.cfg.jinja", edition)


def _rendered(format_: str, template: str, edition: AnyMachine, **options: Any) -> str:  # noqa: ANN401 -- passed on
    """The text that a template of a format makes of an edition."""
    try:
        from .rendering import rendered  # noqa: PLC0415 -- it needs Jinja2, which the other formats do not need
    except Exception as error:
        raise MissingPackageError(f"the format {format_}", "jinja2", "exports", error) from error
    return rendered(template, edition, **options)


def _check_calls(format_: str, machine: Machine, calls: Collection[str], trace: Trace | None) -> None:
    """Check that the chosen calls exist, and that they include all that must be shown."""
    for call in calls:
        if call not in machine.calls:
            raise InvalidExportError(f"{machine} has no call {call!r}; it has {listed(machine.calls)}")
    if FORMATS[format_].trace and all(machine.calls[call].ends for call in calls):
        shown = listed(calls)
        raise InvalidExportError(f"{format_} shows {shown} only as a note, not as an arrow: add another call")
    for step in () if trace is None else trace.steps:
        if step.input.call is not None and step.input.call.name not in calls:
            raise InvalidExportError(f"the trace calls {step.input.call}, which is not among the calls to show")


def _had(option: str, format_: str, what: str, value: Any) -> Any:  # noqa: ANN401 -- passed on as it is
    if not getattr(FORMATS[format_], option):
        able = listed(name for name, kind in FORMATS.items() if getattr(kind, option))
        raise InvalidExportError(f"the format {format_} cannot show {what}; these can (--format): {able}")
    return value
