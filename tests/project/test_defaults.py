"""Each default is declared once: signatures use the constant and do not repeat its value."""

from __future__ import annotations

import ast
from inspect import signature
from pathlib import Path

import syncedmem
from syncedmem import Blob, SyncedMemory
from syncedmem.cli.fuzz import fuzz as command
from syncedmem.cli.verify import verify
from syncedmem.model.caffe import DEFAULT, EDITIONS
from syncedmem.model.defaults import DEFAULT_STEPS, FUZZ
from syncedmem.runtime.devices.registry import AUTOMATIC
from syncedmem.spec.fuzz import fuzz
from syncedmem.spec.memory.kit import check_conformance

PACKAGE = Path(syncedmem.__file__).parent


def literal_defaults(source: str, parameter: str) -> list[str]:
    """Return the functions of a source text in which a parameter has a string literal as its default."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            plain = arguments.posonlyargs + arguments.args
            pairs = [
                *zip(reversed(plain), reversed(arguments.defaults), strict=False),
                *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
            ]
            found += [node.name for it, default in pairs if it.arg == parameter and is_text(default)]
    return found


def is_text(default: ast.expr | None) -> bool:
    """Return whether a default is a string literal that names something."""
    return isinstance(default, ast.Constant) and isinstance(default.value, str) and bool(default.value)


def test_no_signature_names_the_default_edition() -> None:
    """The default edition is declared with the editions: it is the first one."""
    sources = [*PACKAGE.rglob("*.py"), *(path for room in ("model", "spec") for path in (PACKAGE / room).rglob("*.py"))]
    texts = [path.read_text(encoding="utf-8") for path in sources]

    assert [] == [name for text in texts for name in literal_defaults(text, "edition")]
    assert DEFAULT is next(iter(EDITIONS.values()))
    assert any("= DEFAULT" in text for text in texts)


def test_no_signature_names_the_default_device() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (PACKAGE / "runtime").rglob("*.py")]

    assert [] == [name for text in texts for name in literal_defaults(text, "device")]
    assert {AUTOMATIC} == {
        signature(it).parameters["device"].default for it in (SyncedMemory, Blob.load, Blob.from_array)
    }


def test_the_command_line_and_the_library_have_the_same_defaults() -> None:
    """The model declares them, because ``--help`` must not import the spec."""
    here, there = (
        {name: it.default for name, it in signature(function).parameters.items()} for function in (command, fuzz)
    )
    declared = FUZZ._asdict()

    assert declared == {name: there[name] for name in declared} == {name: here[name] for name in declared}
    assert {DEFAULT_STEPS} == {signature(it).parameters["steps"].default for it in (check_conformance, verify)}


def test_a_literal_would_be_found() -> None:
    signatures = ("first(edition: str = 'caffe', other=1)", "second(*, other, edition='early')", "third(edition)")

    assert ["first", "second"] == literal_defaults("".join(f"def {it}: ...\n" for it in signatures), "edition")
