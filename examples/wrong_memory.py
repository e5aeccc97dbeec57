"""A memory that is wrong on purpose: the reference memory of the kit, with one wrong step.

Try it: `syncedmem replay vectors/caffe/modes.jsonl examples/wrong_memory.py:CopiesUpOnlyOnce`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.spec import ReferenceMemory

if TYPE_CHECKING:
    from syncedmem.model import Action


class CopiesUpOnlyOnce(ReferenceMemory):
    """Wrong: bytes are copied to the device only when memory is allocated there."""

    def copy(self, action: Action, blocks: Any, stream: Any) -> None:
        """Copy from one side to the other."""
        if action.side == "cpu" or not self.has_gpu_pointer:
            super().copy(action, blocks, stream)
