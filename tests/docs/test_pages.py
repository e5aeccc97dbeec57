"""The code blocks of the pages that name a device run on every device of this machine.

Sybil runs all blocks unchanged (`make docs`). A block for the simulated device has to be right on a real device too.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from subjects import devices
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.runtime import DeviceAllocator

ROOT = Path(__file__).parents[2]
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
    found = {name_of(item) for value in names.values() for item in allocators_of(value)}

    assert name in found
    assert "assert " in block


def allocators_of(value: object) -> list[DeviceAllocator]:
    """Return the allocators of a value, which is an allocator, a memory, a buffer or a blob."""
    around = (value, *(getattr(value, name, None) for name in ("device", "allocator", "data_memory")))
    inside = (getattr(around[-1], "device", None),)
    return [item for item in (*around, *inside) if isinstance(item, DeviceAllocator)]


COMMANDS = [
    pytest.param(shlex.split(line)[2:], id=f"{page.name}: {line}")
    for page in (ROOT / "README.md", ROOT / "docs" / "fuzzing.md")
    for line in re.findall(r"^\$ (.*syncedmem fuzz .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]


YOURS = {
    "pool.c": "#include <stdlib.h>\nvoid *pool_malloc(size_t n) { return malloc(n); }\n"
    "void pool_free(void *p) { free(p); }\n",
    "Makefile": "libpool.so: pool.c\n\t$(CC) $(CFLAGS) -shared -fPIC $(LDFLAGS) -o $@ $<\n",
}
"""The files that the pages take for those of the reader."""


@pytest.mark.deep
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_of_the_pages_runs_as_it_is_written(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It runs in the top folder of the checkout, with fewer steps. The command for a seeded bug has to fail."""
    if "rmm" in " ".join(arguments):
        pytest.importorskip("rmm", reason="RMM is not installed: pip install rmm-cu12")
    monkeypatch.chdir(ROOT)
    if arguments[0].startswith(("./pool.c:", "./libpool.so:")):
        monkeypatch.chdir(tmp_path)
        for name, text in YOURS.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["fuzz", *arguments, "--steps", "20000", "--out", str(tmp_path)])

    assert int("PutBackTwice" in " ".join(arguments)) == result.exit_code, result.output


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md"])
def test_a_file_that_is_a_page_too_links_to_no_file(name: str) -> None:
    """The same link is read from two folders; the build of the site, which finds that too, is no quick test."""
    text = re.sub(r"`[^`]*`", "", (ROOT / name).read_text(encoding="utf-8"))
    assert [] == re.findall(r"\]\((?!https?:)[^)]*\)", text)
