"""What is checked of messages: what a blob takes from a BlobProto, and writes into one (blob.cpp 410-553).

The messages are made from the one that the blob under test writes, so that no package is needed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..subject import Bench
    from .trial import BlobTrial

__all__ = ["MESSAGES", "offers_messages"]


def offers_messages(bench: Bench) -> bool:
    """Whether blobs of a bench have messages, and what these need is installed."""
    blob = bench.make((1,), dtype="float32", host=bench.host, device=bench.device)
    if not hasattr(blob, "to_proto"):
        return False
    try:
        blob.to_proto()
    except ImportError:
        return False
    except Exception:  # noqa: BLE001 -- whatever a blob makes of that: the rules say what is wrong with it
        return True
    return True


MESSAGES: tuple[Callable[[Bench], Iterator[BlobTrial]], ...] = ()
"""The checks of blobs that have messages."""
