"""A memory that is wrong on purpose: the reference memory of the kit, with one wrong step.

Try it: `syncedmem replay vectors/caffe/modes.jsonl examples/wrong_memory.py:CopiesUpOnlyOnce`.
"""

from __future__ import annotations

from typing import Any

from syncedmem.spec import ReferenceMemory


class CopiesUpOnlyOnce(ReferenceMemory):
    """Wrong: bytes are copied to the device only when memory is allocated there."""

    def copy_up(self, pointer: Any) -> None:
        """Copy the host side to the device."""
        if self.gpu_ptr is None:
            super().copy_up(pointer)
