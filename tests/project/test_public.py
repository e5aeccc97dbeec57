"""The package: public names, which are loaded lazily, and the generated list that type checkers read."""

from __future__ import annotations

# pyright: reportUnnecessaryTypeIgnoreComment=true
import importlib.util
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import syncedmem
from syncedmem.model import errors
from syncedmem.runtime import allocators

if TYPE_CHECKING:
    from pathlib import Path

NAMES: list[str] = vars(importlib.import_module("syncedmem"))["__getattr__"]("__all__")


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there(name: str) -> None:
    """It is the same object as in its room."""
    value = getattr(syncedmem, name)
    rooms = {"model", "runtime", "spec", syncedmem._ROOMS.get(name, "model")}  # pyright: ignore[reportPrivateUsage] -- the list
    homes = [importlib.import_module(f"syncedmem.{room}") for room in rooms]

    assert name == "__version__" or any(getattr(home, name, None) is value for home in homes)
    assert name in dir(syncedmem)


def test_all_that_a_room_lists_as_a_whole_is_public() -> None:
    """A new error or adaptor becomes public without an entry in another list."""
    assert {*errors.__all__, *allocators.__all__} < {*NAMES} == {*NAMES} & {*dir(syncedmem)}
    assert len(NAMES) == len({*NAMES})


USED = """
from syncedmem import *
import syncedmem
assert "SyncedMemory" in globals()
assert {name!r} not in globals() and {name!r} not in dir(syncedmem)
if {device!r}:
    from syncedmem.runtime import probe
    print(next(it.detail for it in probe() if it.name == {device!r}))
try:
    from syncedmem import {name}
except SyncedMemoryError as error:
    print(type(error).__name__, error)
"""
"""A program that takes all that can be had, and then asks for a name that cannot."""


@pytest.mark.deep(quick=1)
@pytest.mark.parametrize("raised", ["ImportError", "RuntimeError", "OSError", "ModuleNotFoundError", "AttributeError"])
@pytest.mark.parametrize(
    ("library", "name", "device"),
    [
        ("cupy", "CUDADeviceAllocator", "cuda"),
        ("pyopencl", "OpenCLDeviceAllocator", "opencl"),
        ("hypothesis", "check_conformance", ""),
    ],
)
def test_a_library_that_cannot_be_imported_hides_its_names(
    library: str, name: str, device: str, raised: str, tmp_path: Path
) -> None:
    """Whatever it raises. The list of devices and asking for a name say why, in a line."""
    (tmp_path / f"{library}.py").write_text(f"raise {raised}('half\\ninstalled')\n", encoding="utf-8")
    program = USED.format(name=name, device=device)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)

    said = re.sub(r"\d+ errors? generated\.\n", "", done.stderr)  # PoCL's own, where it cannot compile
    assert (0, "") == (done.returncode, said)
    lines = done.stdout.splitlines()
    assert [True] * (2 if device else 1) == ["half installed" in line for line in lines]
    assert lines[-1].startswith(("NoDeviceError", "MissingPackageError"))
    assert "pip install" in lines[-1]


@pytest.mark.deep
def test_without_mako_pyopencl_hides_its_names(tmp_path: Path) -> None:
    """PyOpenCL itself can be imported then, and the modules that make kernels cannot."""
    (tmp_path / "mako").mkdir()
    (tmp_path / "mako" / "__init__.py").write_text("raise ModuleNotFoundError('No Mako here')\n", encoding="utf-8")
    program = USED.format(name="OpenCLDeviceAllocator", device="opencl")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    assert [True] * 2 == ["Mako" in line and "pip install mako pyopencl" in line for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("hypothesis", {"Subject", "check_blobs", "check_conformance"}),
        ("cupy", {"CUDADeviceAllocator"}),
        ("pyopencl", {"OpenCLDeviceAllocator"}),
    ],
)
def test_without_a_library_all_that_is_listed_can_be_imported(
    library: str, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a plain installation, where ``from syncedmem import *`` and `pydoc` must not stop at the kit."""
    assert (names < {*dir(syncedmem)}) == (importlib.util.find_spec(library) is not None)

    monkeypatch.setitem(sys.modules, library, None)

    assert not names & {*dir(syncedmem)}
    assert not names & {*vars(syncedmem)["__getattr__"]("__all__")}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'syncedmem' has no attribute 'Blobb'"):
        _ = syncedmem.Blobb  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", ["model", "runtime", "spec", "interop", "runtime.interop"])
def test_a_room_has_and_shows_what_it_lists_and_no_more(module: str) -> None:
    room = importlib.import_module(f"syncedmem.{module}")

    assert sorted({*room.__all__}) == sorted(room.__all__) == dir(room)
    assert all(hasattr(room, name) for name in room.__all__)


def test_the_package_shows_its_public_names_and_modules_only() -> None:
    assert {"interop", "model", "runtime", "spec"} == {*dir(syncedmem)} - {*NAMES}


@pytest.mark.deep
def test_importing_the_package_loads_no_room() -> None:
    program = "import sys, syncedmem; print(sorted(m for m in sys.modules if m.startswith('syncedmem.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout


def test_a_checkout_without_links_says_so(tmp_path: Path) -> None:
    """If links became text files, the import fails and says how to repair them."""
    for room in ("model", "runtime", "spec"):
        (tmp_path / room).write_text(f"../../{room}", encoding="utf-8")

    with pytest.raises(ImportError, match=r"model should be a link .*git config core.symlinks true"):
        syncedmem._require_rooms(str(tmp_path))  # pyright: ignore[reportPrivateUsage] -- what runs at import
