"""Diagrams and tables of the machine in pages that Sphinx builds: ``extensions = ["syncedmem.sphinx"]``.

Two directives.  Both take the name of an edition, or the file of a machine of your own, and draw it while the page is
built, so there is nothing to keep up to date::

    .. syncedmem-diagram:: caffe
       :trace: mutable_cpu_data gpu_data
       :size: 4096
       :caption: What a read on the device does.

    .. syncedmem-table:: machines/mine.py:NO_PUSH
       :calls: cpu_data gpu_data

A file is named as in ``literalinclude``: from the folder of the page, or with a slash in front from the folder of the
sources.  If it changes, the page is built again.
In MyST they are fenced: a line of three backticks with ``{syncedmem-diagram} caffe``, the options, three backticks.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from syncedmem import __version__
from syncedmem.model import SyncedMemoryError
from syncedmem.model.caffe import DEFAULT, EDITIONS
from syncedmem.model.diagrams.palette import Theme
from syncedmem.model.exports.declared import machine_named
from syncedmem.model.exports.formats import export
from syncedmem.model.exports.options import OPTIONS, export_options
from syncedmem.model.exports.tables import rst_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from docutils.nodes import Node
    from sphinx.application import Sphinx

__all__ = ["Diagram", "Picture", "Table", "setup"]


class Picture(nodes.General, nodes.Element):
    """A diagram: SVG inside of a page, and a PDF for print.

    Attributes
    ----------
    options : dict
        The arguments of ``syncedmem.model.exports.formats.export``.
    """


class _Exported(SphinxDirective):
    """A directive whose argument is an edition, or the file of a machine."""

    optional_arguments = 1
    final_argument_whitespace = True

    def asked(self) -> dict[str, Any]:
        """The arguments of ``export``."""
        edition = machine_named(self.arguments[0] if self.arguments else DEFAULT.name, self._found)
        return export_options(edition, {name: text for name, text in self.options.items() if name in OPTIONS})

    def _found(self, file: str) -> str:
        """The path of a file; the page depends on it."""
        _, path = self.env.relfn2path(file)
        self.env.note_dependency(path)
        return path


class Diagram(_Exported):
    """``syncedmem-diagram``: a picture of a machine."""

    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        **dict.fromkeys(OPTIONS, directives.unchanged_required),
        "alt": directives.unchanged_required,
        "caption": directives.unchanged_required,
        "name": directives.unchanged,
        "class": directives.class_option,
    }

    def run(self) -> list[Node]:
        """Put a figure in place of the directive.

        Raises
        ------
        docutils.utils.SystemMessage
            If there is no such edition, machine, call or detail.
        """
        try:
            options = self.asked()
            svg = export("svg", **options)
        except SyncedMemoryError as error:
            raise self.error(str(error)) from error
        edition = options["edition"]
        ours = f"Caffe's SyncedMemory, edition {edition}" if edition in EDITIONS.values() else edition
        about = self.options.get("alt", f"The machine of {ours}.")
        picture = Picture("", options=options, svg=svg, alt=about)
        figure = nodes.figure(
            "", picture, align="center", classes=["syncedmem-diagram", *self.options.get("class", ())]
        )
        if "caption" in self.options:
            inline, messages = self.parse_inline(self.options["caption"])
            figure += nodes.caption(self.options["caption"], "", *inline)
            figure += messages
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure]


class Table(_Exported):
    """``syncedmem-table``: what each call does in each state."""

    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "calls": directives.unchanged_required,
        "detail": directives.unchanged_required,
        "caption": directives.unchanged_required,
        "name": directives.unchanged,
        "class": directives.class_option,
    }

    def run(self) -> list[Node]:
        """Put a table in place of the directive, and the legend of its codes, if it has any.

        Raises
        ------
        docutils.utils.SystemMessage
            If there is no such edition, machine, call or detail.
        """
        try:
            options = self.asked()
            export("markdown", **options)  # which refuses what a table cannot show
            text = rst_table(**options)
        except SyncedMemoryError as error:
            raise self.error(str(error)) from error
        children = publish_doctree(text, settings_overrides={"report_level": 5}).children
        table = cast("nodes.table", children[0])
        table["classes"] += ["syncedmem-table", *self.options.get("class", ())]
        if "caption" in self.options:
            inline, messages = self.parse_inline(self.options["caption"])
            table.insert(0, nodes.title(self.options["caption"], "", *inline))
            children = [*children, *messages]
        self.set_source_info(table)
        self.add_name(table)
        return list(children)


# --- writers


def _html(writer: Any, node: Picture) -> None:  # noqa: ANN401 -- Sphinx has no type for it
    name = writer.attval(node["alt"])
    more = f'role="img" aria-label="{name}" style="max-width:100%;height:auto"'
    writer.body.append(node["svg"].replace('role="img"', more, 1))
    raise nodes.SkipNode


def _latex(writer: Any, node: Picture) -> None:  # noqa: ANN401
    options: dict[str, Any] = {**node["options"], "theme": Theme.LIGHT}
    data = cast("bytes", export("pdf", **options))
    name = f"syncedmem-{sha256(data).hexdigest()[:16]}.pdf"
    Path(writer.builder.outdir, name).write_bytes(data)
    writer.body.append(rf"\noindent\sphinxincludegraphics[width=\linewidth]{{{{{name[:-4]}}}.pdf}}")
    raise nodes.SkipNode


def _text(writer: Any, node: Picture) -> None:  # noqa: ANN401
    writer.new_state(0)
    writer.add_text(f"[{node['alt']}]")
    writer.end_state()
    raise nodes.SkipNode


def _man(writer: Any, node: Picture) -> None:  # noqa: ANN401
    writer.body.append(f"[{node['alt']}]\n\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_node(
        Picture,
        html=(_html, None),
        epub=(_html, None),
        latex=(_latex, None),
        text=(_text, None),
        man=(_man, None),
        texinfo=(_man, None),
    )
    app.add_directive("syncedmem-diagram", Diagram)
    app.add_directive("syncedmem-table", Table)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
