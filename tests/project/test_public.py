"""The front door: public names, lazily loaded, and the committed files that were made from the model."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import syncedmem
from syncedmem.model import errors
from syncedmem.runtime import allocators

NAMES: list[str] = vars(importlib.import_module("syncedmem"))["__getattr__"]("__all__")


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there(name: str) -> None:
    """And is the very object of its room."""
    value = getattr(syncedmem, name)
    homes = [importlib.import_module(f"syncedmem.{room}") for room in ("model", "runtime", "spec")]

    assert name == "__version__" or any(getattr(home, name, None) is value for home in homes)
    assert name in dir(syncedmem)


def test_the_lists_of_names_agree() -> None:
    """What type checkers read, and where each name comes from, are written down twice: compare them."""
    tree = ast.parse(Path(syncedmem.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    named = {it.name: node.module for node in imports for it in node.names if it.name == it.asname}
    whole = {node.module for node in imports if node.names[0].name == "*"}

    assert (syncedmem._ROOMS, set(syncedmem._WHOLE)) == (named, whole)  # pyright: ignore[reportPrivateUsage] -- the lists


def test_all_that_a_room_lists_as_a_whole_is_public() -> None:
    """A new error and a new adaptor are, without being named anywhere else."""
    assert {*errors.__all__, *allocators.__all__} < {*NAMES} == {*NAMES} & {*dir(syncedmem)}
    assert len(NAMES) == len({*NAMES})


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'syncedmem' has no attribute 'Blobb'"):
        _ = syncedmem.Blobb


@pytest.mark.parametrize("room", ["model", "runtime", "spec"])
def test_rooms_export_what_they_list(room: str) -> None:
    module = importlib.import_module(f"syncedmem.{room}")

    assert sorted(set(module.__all__), key=str) == sorted(module.__all__, key=str)
    assert all(hasattr(module, name) for name in module.__all__)


def test_importing_the_front_door_loads_no_room() -> None:
    program = "import sys, syncedmem; print(sorted(m for m in sys.modules if m.startswith('syncedmem.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout


def test_a_checkout_without_links_says_so(tmp_path: Path) -> None:
    """Where links became text files, importing stops with what to do."""
    for room in ("model", "runtime", "spec"):
        (tmp_path / room).write_text(f"../../{room}", encoding="utf-8")

    with pytest.raises(ImportError, match=r"model should be a link .*git config core.symlinks true"):
        syncedmem._require_rooms(str(tmp_path))  # pyright: ignore[reportPrivateUsage] -- what runs at import
