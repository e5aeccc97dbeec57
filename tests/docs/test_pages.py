"""The code blocks of the pages that name a device run on every device of this machine.

Sybil runs all blocks unchanged (`make docs`). A block for the simulated device has to be right on a real device too.
"""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from subjects import devices
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.runtime import DeviceAllocator

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]
NOTEBOOK = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
NAMED = '"simulated"'
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, block in enumerate(PYTHON.findall(page.read_text(encoding="utf-8")))
    if NAMED in block
]


def name_of(device: DeviceAllocator) -> str:
    return device.device_type.name.lower()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", [name_of(device) for device in devices()])
def test_a_block_that_names_a_device_runs_on_every_device(block: str, name: str) -> None:
    """Only the name is replaced. The objects that it makes are on that device, and the block has its own assertions."""
    names: dict[str, Any] = {}
    exec(block.replace(NAMED, f'"{name}"'), names)  # noqa: S102 -- our own pages
    found = {name_of(it) for value in names.values() for it in allocators_of(value)}

    assert name in found
    assert "assert " in block


def allocators_of(value: object) -> list[DeviceAllocator]:
    """Return the allocators of a value, which is an allocator, a memory, a buffer or a blob."""
    around = (value, *(getattr(value, name, None) for name in ("device", "allocator", "data_memory")))
    inside = (getattr(around[-1], "device", None),)
    return [it for it in (*around, *inside) if isinstance(it, DeviceAllocator)]


COMMANDS = dict.fromkeys(  # what stands on both pages runs once
    line
    for page in (ROOT / "README.md", ROOT / "docs" / "fuzzing.md")
    for line in re.findall(r"^\$ .*(syncedmem fuzz .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
)


POOL = """from syncedmem import CPUDeviceAllocator


def pool():
    return CPUDeviceAllocator()
"""
YOURS = {
    "pool.py": POOL,
    "pool.c": "#include <stdlib.h>\nvoid *pool_malloc(size_t n) { return malloc(n); }\n"
    "void pool_free(void *p) { free(p); }\nvoid pool_reset(void) {}\n",
    "Makefile": "libpool.so: pool.c\n\t$(CC) $(CFLAGS) -shared -fPIC $(LDFLAGS) -o $@ $<\n",
}
"""The files that the pages take for those of the reader."""


@pytest.mark.no_cover
@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_of_the_pages_runs_as_it_is_written(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It runs in the top folder, with fewer steps and seeds. The command for a seeded bug has to fail."""
    arguments = shlex.split(command)[2:]
    if "rmm" in command:
        pytest.importorskip("rmm", reason="RMM is not installed: pip install rmm-cu12")
    monkeypatch.chdir(ROOT)
    if arguments[0].startswith(("./pool.c:", "./libpool.so:", "pool.py:")):
        monkeypatch.chdir(tmp_path)
        for name, text in YOURS.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    with the_machines_of(arguments, tmp_path) as here:
        result = CliRunner().invoke(app, ["fuzz", *here, "--steps", "20000", "--out", str(tmp_path)])

    assert int("PutBackTwice" in command) == result.exit_code, result.output


@pytest.mark.no_cover
def test_the_commands_of_the_c_abi_build_a_port(tmp_path: Path) -> None:
    """As they are written, in a checkout; the last one tests it."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    page = (ROOT / "docs" / "port-abi.md").read_text(encoding="utf-8")
    *commands, conform = re.findall(r"^\$ (.*)$", page.partition("```console")[2].partition("```")[0], re.MULTILINE)
    assert ["syncedmem", "syncedmem", "gcc"] == [command.split()[0] for command in commands]
    said = ""
    for command in [*commands, f"{conform} --level L0 --steps 20"]:
        program, *arguments = shlex.split(command)
        before = [sys.executable, "-m", program] if program == "syncedmem" else [program]
        done = subprocess.run([*before, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr)
        said = done.stdout

    assert said.splitlines()[-1].startswith("conforms to caffe/L0: ")


@contextmanager
def the_machines_of(arguments: list[str], folder: Path) -> Generator[list[str]]:
    """Yield the arguments with two seeds, a folder that exists, and a scheduler that does if they name one."""
    fewer = [re.sub(r"^1\.\.\d+$", "1..2", it).replace("/shared", str(folder)) for it in arguments]
    if "--scheduler" not in fewer:
        yield fewer
        return
    with import_module("distributed").LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        yield [it.replace("tcp://HOST:8786", cluster.scheduler_address) for it in fewer]


@pytest.mark.no_cover
def test_the_first_pages_run_in_one_program_and_end_quietly(tmp_path: Path) -> None:
    """A reader may put them one after another, and close nothing."""
    pages = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("concepts.md", "start.md"))
    program = tmp_path / "program.py"
    program.write_text("\n".join(block for page in pages for block in PYTHON.findall(page)), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


def test_the_notebook_shows_a_diagram_after_each_cell_but_the_last() -> None:
    """Sphinx runs it too, but would not notice if a cell showed nothing."""
    names: dict[str, Any] = {}
    shown: list[Any] = []
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```", NOTEBOOK, re.MULTILINE | re.DOTALL):
        *before, last = cell.splitlines()
        exec("\n".join(before), names)  # noqa: S102 -- our own pages
        shown.append(eval(last, names))  # noqa: S307 -- our own pages
        drawn: dict[str, str] = shown[-1]._repr_mimebundle_()
        assert bool(drawn) is (last != "memory" or "close" not in cell)

    assert len(shown) == 6


def test_the_commands_are_found() -> None:
    targets = {shlex.split(line)[2] for line in COMMANDS}

    assert {"libc.so.6:malloc,free", "examples/rmm_pool.py:pool", "syncedmem:CPUDeviceAllocator"} <= targets


def test_the_blocks_are_found() -> None:
    """They are the README's block about users' memory, and the blocks about buffers, adaptors and the pool."""
    assert {"README.md-1", "allocators.md-0", "allocators.md-3", "allocators.md-4"} <= {block.id for block in BLOCKS}
