"""The functions of the declared actions: an action is a name in the model, and a function on real memory here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import DeclarationError, caffe
from syncedmem.model.interface import MemcpyKind

from ..devices.host import cpu_allocator
from .flight import queue_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .transaction import Transaction

__all__ = ["BINDINGS", "EMPTY_BINDINGS"]

# Read once here, because reading a member of an enum takes as long as the rest of a transaction.
_UP, _DOWN = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU


def _allocate_cpu(transaction: Transaction) -> None:
    transaction.own_cpu = transaction.allocate(transaction.host(transaction.after))
    transaction.cpu = transaction.own_cpu.slot[0]


def _zero_cpu(transaction: Transaction) -> None:
    transaction.host(transaction.after).memset_zero(transaction.cpu, transaction.size)


def _copy_to_cpu(transaction: Transaction) -> None:
    transaction.sides.device.memcpy(transaction.gpu, transaction.cpu, transaction.size, _DOWN)


def _adopt_cpu(transaction: Transaction) -> None:
    transaction.cpu, transaction.own_cpu = transaction.argument, None


def _free_cpu(transaction: Transaction) -> None:
    transaction.free(transaction.own_cpu)


def _allocate_gpu(transaction: Transaction) -> None:
    transaction.own_gpu = transaction.allocate(transaction.sides.device)
    transaction.gpu = transaction.own_gpu.slot[0]


def _zero_gpu(transaction: Transaction) -> None:
    transaction.sides.device.memset_zero(transaction.gpu, transaction.size)


def _copy_to_gpu(transaction: Transaction) -> None:
    transaction.sides.device.memcpy(transaction.cpu, transaction.gpu, transaction.size, _UP)


def _copy_to_gpu_async(transaction: Transaction) -> None:
    ends = transaction.cpu, transaction.gpu
    queue_copy(transaction.sides.device, ends, transaction.size, _UP, transaction.argument, transaction.keep)


def _adopt_gpu(transaction: Transaction) -> None:
    transaction.gpu, transaction.own_gpu = transaction.argument, None


def _free_gpu(transaction: Transaction) -> None:
    transaction.free(transaction.own_gpu)


def _nothing(transaction: Transaction) -> None:
    """The function of an action on a memory of zero bytes."""


def _empty_cpu(transaction: Transaction) -> None:
    transaction.cpu = cpu_allocator().empty(0)


def _empty_gpu(transaction: Transaction) -> None:
    transaction.gpu = transaction.sides.device.empty(0)


def _complete(table: Mapping[str, Callable[[Transaction], None]]) -> Mapping[str, Callable[[Transaction], None]]:
    """A table of bindings, after a check that it has a function for every declared action.

    Raises
    ------
    DeclarationError
        If it has none for one of them.
    """
    missing = [action for action in caffe.EVERYTHING.actions if action not in table]
    if missing:
        raise DeclarationError(f"no implementation for: {', '.join(missing)}")
    return table


BINDINGS = _complete(
    {
        caffe.ALLOCATE_CPU.name: _allocate_cpu,
        caffe.ZERO_CPU.name: _zero_cpu,
        caffe.COPY_TO_CPU.name: _copy_to_cpu,
        caffe.ADOPT_CPU.name: _adopt_cpu,
        caffe.FREE_CPU.name: _free_cpu,
        caffe.ALLOCATE_GPU.name: _allocate_gpu,
        caffe.ZERO_GPU.name: _zero_gpu,
        caffe.COPY_TO_GPU.name: _copy_to_gpu,
        caffe.COPY_TO_GPU_ASYNC.name: _copy_to_gpu_async,
        caffe.ADOPT_GPU.name: _adopt_gpu,
        caffe.FREE_GPU.name: _free_gpu,
    }
)

EMPTY_BINDINGS = _complete(
    {
        **dict.fromkeys(caffe.EVERYTHING.actions, _nothing),
        caffe.ALLOCATE_CPU.name: _empty_cpu,
        caffe.ALLOCATE_GPU.name: _empty_gpu,
        caffe.ADOPT_CPU.name: _adopt_cpu,
        caffe.ADOPT_GPU.name: _adopt_gpu,
    }
)
"""For memories of zero bytes: heads move as for other memories, but no allocator is called for memory."""
