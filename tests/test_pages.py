"""The code blocks of the pages that name a device, on every device of this machine.

Sybil runs all blocks as they stand (`make docs`); what a page shows on the simulated device has to be as right on a
real one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benches import devices

if TYPE_CHECKING:
    from syncedmem.runtime import DeviceAllocator

ROOT = Path(__file__).parent.parent
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
    """Unchanged but for the name."""
    exec(block.replace(NAMED, f'"{name}"'), {})  # noqa: S102 -- our own pages


def test_the_blocks_are_found() -> None:
    """That of the README with memory of one's own, and that about buffers."""
    assert ["README.md-1", "allocators.md-0"] == [block.id for block in BLOCKS]
