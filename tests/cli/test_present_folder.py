"""Nothing runs that was not named: a folder may have a file with the name of any module that a command imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from syncedmem.cli import commands
from syncedmem.spec.engine.imports import SAFE_PATH, module_at, safe_starts

ROOT = Path(__file__).parents[2]

MISSING = (
    "IPython bokeh cityhash colorama crick ctags cupy cytoolz distributed_ucxx gilknocker jax jupyter_server_proxy lz4 "
    "mmh3 org prometheus_client pynvml rmm setproctitle sitecustomize snappy tensorflow torch usercustomize uvloop "
    "xcffib xxhash zstandard"
)
"""What the libraries try to import, and is seldom there."""

MEMORY = "from syncedmem import SyncedMemory\ndef maker(size, *, host, device): return SyncedMemory(size, host=host)\n"
POOL = (
    "import helper\nfrom syncedmem import CPUDeviceAllocator, PoolAllocator\n"
    "def Pool(): return PoolAllocator(CPUDeviceAllocator())\n"
)

VECTORS = ROOT / "vectors" / "caffe" / "modes.jsonl"
FUZZED = ("--steps", "200", "--seconds", "30")
COMMANDS = {
    "check-trace": ("check-trace", "log.jsonl"),
    "conform": ("conform", "a_memory:maker", "--steps", "10"),
    "conform with a file": ("conform", "./a_memory.py:maker", "--steps", "10"),
    "devices": ("devices",),
    "diagram": ("diagram", "--format", "svg", "-o", "machine.svg"),
    "diagram as a picture": ("diagram", "--format", "png", "-o", "machine.png"),
    "diagram from a template": ("diagram", "--format", "tla", "-o", "machine.tla"),
    "diff": ("diff", "caffe", "early"),
    "explore": ("explore", "-o", "machine.html"),
    "fuzz": ("fuzz", "libc.so.6:malloc,free", *FUZZED),
    "fuzz with a module": ("fuzz", "a_pool:Pool", *FUZZED),
    "fuzz with a file": ("fuzz", "./a_pool.py:Pool", *FUZZED),
    "fuzz in many processes": ("fuzz", "a_pool:Pool", *FUZZED, "--jobs", "2"),
    "learn": ("learn", "./a_memory.py:maker"),
    "replay": ("replay", str(VECTORS)),
    "replay with a module": ("replay", str(VECTORS), "a_memory:maker"),
    "vectors": ("vectors", "--out", "vectors", "--suite", "caffe/modes"),
    "verify": ("verify", "--device", "cpu", "--steps", "0"),
    "verify a machine": ("verify", "--model", "caffe"),
}


def plant(folder: Path) -> Path:
    """Make a folder with a file of each name that is imported, and the targets; return what exists if one ran."""
    ran = folder.parent / "ran"
    names = {*sys.stdlib_module_names, *packages_distributions(), *MISSING.split()}
    folder.mkdir()
    for name in filter(str.isidentifier, names):
        text = f"open({str(ran)!r}, 'a').write({name!r} + ' ')\nraise ImportError('planted')\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "helper.py").write_text("", encoding="utf-8")
    (folder / "a_memory.py").write_text(MEMORY, encoding="utf-8")
    (folder / "a_pool.py").write_text(POOL, encoding="utf-8")
    (folder / "log.jsonl").write_text(json.dumps({"call": "cpu_data"}) + "\n", encoding="utf-8")
    return ran


def test_every_command_is_tried() -> None:
    assert {command.__name__.replace("_", "-") for command in commands()} == {name.split()[0] for name in COMMANDS}


@pytest.mark.deep
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_runs_a_file_of_the_present_folder_that_was_not_named(name: str, tmp_path: Path) -> None:
    """``fuzz`` ran a file ``transitions.py``."""
    folder = tmp_path / "here"
    ran = plant(folder)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", SAFE_PATH)}
    script = Path(sys.executable).with_name("syncedmem")
    done = subprocess.run(
        [script, *COMMANDS[name]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )

    assert not ran.exists(), ran.read_text(encoding="utf-8")
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_of_the_present_folder_is_found_after_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the standard library that nobody has imported yet is not replaced, and the folder is no place for it."""
    monkeypatch.chdir(tmp_path)
    before = [*sys.path]
    monkeypatch.setattr(sys, "path", [*before])
    for name in ("colorsys", "only_here"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text("NAME = __name__\n", encoding="utf-8")

    assert not hasattr(module_at("colorsys"), "NAME")
    assert before == sys.path
    assert "only_here" == module_at("only_here").NAME
    assert [*before, str(tmp_path)] == sys.path
    for name in ("colorsys", "only_here"):
        monkeypatch.delitem(sys.modules, name)


def test_a_file_imports_what_is_beside_it_after_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [*sys.path]
    monkeypatch.setattr(sys, "path", [*before])
    (tmp_path / "a_target.py").write_text("import a_helper, json\nNAME = a_helper.NAME\n", encoding="utf-8")
    for name in ("a_helper", "json"):
        (tmp_path / f"{name}.py").write_text("NAME = __name__\n", encoding="utf-8")
    target = module_at(str(tmp_path / "a_target.py"))

    assert "a_helper" == target.NAME
    assert json is target.json
    assert [*before, str(tmp_path)] == sys.path
    for name in ("a_helper", "a_target"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("before", [None, "1"])
def test_only_the_start_of_a_process_has_another_environment(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SAFE_PATH, raising=False)
    if before is not None:
        monkeypatch.setenv(SAFE_PATH, before)
    with safe_starts():
        assert os.environ[SAFE_PATH]
    assert before == os.environ.get(SAFE_PATH)
