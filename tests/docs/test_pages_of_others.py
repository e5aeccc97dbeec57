"""Somebody else's pages: a small project that Sphinx builds, one that MkDocs builds, and what they say of mistakes."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import markdown
import pytest
from mkdocs.commands.build import build
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from syncedmem.model.diagrams.palette import Theme
from syncedmem.model.errors import InvalidExportError
from syncedmem.model.exports.formats import export

if TYPE_CHECKING:
    from pathlib import Path

INDEX = """
Memory
======

.. syncedmem-diagram:: caffe
   :trace: mutable_cpu_data gpu_data
   :size: 4096
   :caption: What a *read* on the device does.
   :name: read

.. syncedmem-table:: early
   :calls: cpu_data, gpu_data
   :caption: Two calls.
   :name: calls

See :numref:`read` and :numref:`calls`.

.. syncedmem-table::
   :detail: configurations
   :calls: gpu_data

.. toctree::
   other
"""
OTHER = """
# Other

```{syncedmem-diagram} cpu_only
:alt: Four heads.
:theme: dark
```

```{syncedmem-table}
```
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two pages."""
    (tmp_path / "conf.py").write_text(
        'project = "mine"\nextensions = ["myst_parser", "syncedmem.sphinx"]\nnumfig = True\n'
    )
    (tmp_path / "index.rst").write_text(INDEX, encoding="utf-8")
    (tmp_path / "other.md").write_text(OTHER, encoding="utf-8")
    return tmp_path


def told(project: Path, builder: str) -> str:
    """Build the project in this process; return its warnings."""
    warnings = io.StringIO()
    source, out, trees = str(project), str(project / "out" / builder), str(project / "trees")
    with patch_docutils(), docutils_namespace():
        Sphinx(source, source, out, trees, builder, status=None, warning=warnings).build()
    return warnings.getvalue()


def built(project: Path, builder: str) -> Path:
    """The pages, if there are no warnings."""
    assert told(project, builder) == ""
    return project / "out" / builder


def test_a_page_of_sphinx_has_pictures_and_tables(project: Path) -> None:
    out = built(project, "html")
    page, other = ((out / name).read_text(encoding="utf-8") for name in ("index.html", "other.html"))

    assert 1 == page.count("<svg")
    assert "Copied: 4,096 bytes to GPU, 0 bytes to CPU." in page
    assert "What a <em>read</em> on the device does." in page
    assert 'href="#read"><span class="std std-numref">Fig. 1</span>' in page
    assert 'href="#calls"><span class="std std-numref">Table 1</span>' in page
    assert 2 == page.count("<table")
    assert "mutable_gpu_data" not in page.partition('id="calls"')[2]
    assert "<code" in page.partition("configuration")[2]
    assert "copy to GPU" in page, "the legend of the codes is missing"
    assert 'aria-label="Four heads."' in other
    assert "#12161c" in other
    assert "syncedmem-table" in other


@pytest.mark.parametrize(("builder", "file"), [("text", "index.txt"), ("man", "mine.1"), ("texinfo", "mine.texi")])
def test_where_there_are_no_pictures_a_text_says_what_is_there(project: Path, builder: str, file: str) -> None:
    text = (built(project, builder) / file).read_text(encoding="utf-8")

    assert "The machine of Caffe" in text
    assert "allocate_gpu" in text


@pytest.mark.deep
def test_print_has_the_pdf(project: Path) -> None:
    out = built(project, "latex")
    (tex,) = out.glob("mine.tex")
    pictures = sorted(path.read_bytes()[:5] for path in out.glob("syncedmem-*.pdf"))

    assert [b"%PDF-", b"%PDF-"] == pictures
    assert r"\label{\detokenize{index:read}}" in tex.read_text(encoding="utf-8")
    assert all(path.stem in tex.read_text(encoding="utf-8") for path in out.glob("syncedmem-*.pdf"))


@pytest.mark.deep
def test_pages_are_read_and_written_by_several_processes(project: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-j", "2", "-b", "html", str(project), str(project / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("syncedmem-diagram:: coffee", "coffee"),
        ("syncedmem-diagram::\n   :detail: all", "unknown detail 'all'"),
        ("syncedmem-diagram::\n   :theme: red", "unknown theme 'red'"),
        ("syncedmem-diagram::\n   :size: 4", "size needs trace"),
        ("syncedmem-diagram::\n   :trace: cpu_data\n   :size: -4", "a memory has at least 0 bytes, got -4"),
        ("syncedmem-table::\n   :calls: cpu_dato", "cpu_dato"),
        ("syncedmem-table:: coffee", "coffee"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, directive: str, message: str) -> None:
    (tmp_path / "conf.py").write_text('extensions = ["syncedmem.sphinx"]\n')
    (tmp_path / "index.rst").write_text(f"Memory\n======\n\n.. {directive}\n", encoding="utf-8")

    warnings = told(tmp_path, "html")

    assert "index.rst:4" in warnings
    assert message in warnings


MACHINES = """
from syncedmem.model.caffe import CAFFE
MINE = CAFFE.select("no_push", without="async_gpu_push")
"""
OF_FILES = """
Machines
========

.. syncedmem-diagram:: mine.py:MINE

.. syncedmem-table:: /machines/mine.json
   :calls: cpu_data
"""


def test_a_page_shows_the_machine_of_a_file_and_is_built_again_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text('extensions = ["syncedmem.sphinx"]\n')
    (tmp_path / "index.rst").write_text(f"Mine\n====\n\n.. toctree::\n{'':3}machines/page\n", encoding="utf-8")
    folder = tmp_path / "machines"
    folder.mkdir()
    (folder / "page.rst").write_text(OF_FILES, encoding="utf-8")
    (folder / "mine.py").write_text(MACHINES)
    (folder / "mine.json").write_text(str(export("json", edition="early")))

    page = built(tmp_path, "html") / "machines" / "page.html"
    first = page.read_text(encoding="utf-8")
    assert 'aria-label="The machine of no_push."' in first
    assert "async_gpu_push" not in first
    assert 1 == first.count("<table")

    (folder / "mine.py").write_text(MACHINES.replace("no_push", "renamed"))
    assert not told(tmp_path, "html")
    assert 'aria-label="The machine of renamed."' in page.read_text(encoding="utf-8")

    (folder / "mine.json").unlink()
    assert "machines/mine.json: No such file or directory" in told(tmp_path, "html")


MARKDOWN = """# Memory

```syncedmem-diagram caffe
trace: mutable_cpu_data gpu_data
size: 4096
caption: What a <read> does.
```

~~~ syncedmem-table early
calls: cpu_data
~~~

````md
```syncedmem-diagram
```
````
"""


def test_a_page_of_mkdocs_has_pictures_and_tables(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(MARKDOWN, encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text("site_name: mine\nmarkdown_extensions: [syncedmem.markdown]\n")

    config: Any = importlib.import_module("mkdocs.config")  # its functions have no types
    build(config.load_config(str(tmp_path / "mkdocs.yml"), strict=True))

    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 1 == page.count('<figure class="syncedmem-diagram"><svg')
    assert "<figcaption>What a &lt;read&gt; does.</figcaption>" in page
    assert "Copied: 4,096 bytes to GPU" in page
    assert 1 == page.count('<figure class="syncedmem-table"><table>')
    assert "```syncedmem-diagram" in page, "the block that shows how to write one has to stay"


@pytest.mark.parametrize(
    ("option", "folder"),
    [("", "."), ("{folder: machines}", "machines"), ("{folder: !relative }", "docs/some")],
    ids=["start", "named", "page"],
)
def test_a_page_of_mkdocs_shows_the_machine_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, folder: str
) -> None:
    """Files are looked for where the program was started, in the folder that is named, or in that of the page."""
    for name in ("docs/some", "machines"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / folder / "mine.py").write_text(MACHINES)
    (tmp_path / "docs" / "some" / "page.md").write_text("# Mine\n\n```syncedmem-diagram mine.py:MINE\n```\n")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: mine\nmarkdown_extensions:\n- syncedmem.markdown: {option}\n")
    monkeypatch.chdir(tmp_path)

    config: Any = importlib.import_module("mkdocs.config")
    build(config.load_config("mkdocs.yml", strict=True))

    assert "<title>no_push</title>" in (tmp_path / "site" / "some" / "page" / "index.html").read_text(encoding="utf-8")


def test_a_block_without_options_is_the_default_picture() -> None:
    found = markdown.markdown("```syncedmem-diagram\n```", extensions=["syncedmem.markdown"])

    assert str(export("svg")).split(">", 1)[1].strip() in found
    assert export("svg", theme=Theme.DARK) != export("svg")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("colour: red", "'colour: red' is no option"),
        ("calls cpu_data", "no option"),
        ("theme: red", "unknown theme 'red'"),
    ],
)
def test_a_mistake_in_a_block_is_told(line: str, message: str) -> None:
    with pytest.raises(InvalidExportError, match=message):
        markdown.markdown(f"```syncedmem-diagram\n{line}\n```", extensions=["syncedmem.markdown"])
