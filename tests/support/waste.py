"""Programs that copy more than they need, each with a program that does the same without.

A line of the first one is marked as the waste.  Each takes a device, and says how many copies it is meant to make.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from syncedmem.runtime import Blob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Program = Callable[[Any], object]

__all__ = ["PAGEABLE", "WASTE", "Waste", "marked"]

STEPS, SIZE, RATE = 4, 64, 0.125
MARK = "  # waste"


class Waste(NamedTuple):
    """A wasteful program, one that is right, and how many copies both are meant to make."""

    wasteful: Program
    right: Program
    needed: int


def marked(program: Program) -> int:
    """The number of the line that is marked in a program."""
    lines, first = inspect.getsourcelines(program)
    (found,) = (number for number, line in enumerate(lines, first) if line.rstrip().endswith(MARK))
    return found


def on_device(device: Any) -> Blob[np.float32]:
    """Ones, fresh on both sides, so that arithmetic is done on the device; one copy."""
    blob = Blob((SIZE,), device=device)
    blob.data = np.ones(SIZE)
    blob.gpu_data()
    return blob


# --- the two sides write in turn


def cools_and_holds_the_end_on_the_host(device: Any) -> list[float]:
    """A rod cools on the device, and the host holds one of its ends at a temperature."""
    rod = on_device(device)
    history = [rod.asum_data()]
    for _ in range(STEPS):
        rod.gpu_data()
        rod.scale_data(0.5)
        rod.mutable_cpu_data()[0] = 1  # waste
        history.append(rod.asum_data())
    return history


def cools_and_holds_the_end_on_the_device(device: Any) -> list[float]:
    """The same: the end is one element, which is sent to the device by itself."""
    rod, held = on_device(device), np.ones(1, np.float32)
    history = [rod.asum_data()]
    for _ in range(STEPS):
        rod.scale_data(0.5)
        rod.mutable_gpu_data()[:1].set(held)
        history.append(rod.asum_data())
    return history


# --- a norm on the wrong side


def descends_and_asks_numpy_for_the_norm(device: Any) -> list[float]:
    """Gradient descent on the device, which prints the length of the weights after each step."""
    weights = on_device(device)
    norms: list[float] = []
    for _ in range(STEPS):
        weights.gpu_diff()
        weights.mutable_gpu_diff().set(np.full(SIZE, RATE, np.float32))
        weights.update()
        norms.append(float(np.linalg.norm(weights.cpu_data())))  # waste
    return norms


def descends_and_asks_the_blob_for_the_norm(device: Any) -> list[float]:
    """The same: a blob computes where its numbers are."""
    weights = on_device(device)
    norms: list[float] = []
    for _ in range(STEPS):
        weights.gpu_diff()
        weights.mutable_gpu_diff().set(np.full(SIZE, RATE, np.float32))
        weights.update()
        norms.append(float(weights.sumsq_data() ** 0.5))
    return norms


# --- a copy in each iteration


def sends_the_table_each_time(device: Any) -> float:
    """A table that never changes is written into its blob inside of the loop."""
    table = Blob((SIZE,), device=device)
    total = 0.0
    for _ in range(STEPS):
        table.data = np.arange(SIZE)
        table.gpu_data()  # waste
        total += table.asum_data()
    return total


def sends_the_table_once(device: Any) -> float:
    """The same: what does not change is written before the loop."""
    table = Blob((SIZE,), device=device)
    table.data = np.arange(SIZE)
    total = 0.0
    for _ in range(STEPS):
        table.gpu_data()
        total += table.asum_data()
    return total


# --- data that is looked at in a debugger


def descends_and_shows_the_numbers(device: Any) -> list[float]:
    """What a watch expression of a debugger, or a line of logging, does at a stop."""
    weights, sums = on_device(device), list[float]()
    for step in range(STEPS):
        weights.scale_data(1 - RATE)
        if step == STEPS // 2:
            repr(weights.data)  # waste
        sums.append(weights.asum_data())
    return sums


def descends_and_shows_the_blob(device: Any) -> list[float]:
    """The same: a blob shows where its numbers are, and moves none."""
    weights, sums = on_device(device), list[float]()
    for step in range(STEPS):
        weights.scale_data(1 - RATE)
        if step == STEPS // 2:
            repr(weights)
        sums.append(weights.asum_data())
    return sums


# --- overwritten unread


def batches() -> Iterator[np.ndarray[Any, np.dtype[np.float32]]]:
    """What a reader of a file yields."""
    for number in range(STEPS):
        yield np.full(SIZE, number, np.float32)


def fills_the_batch_again(device: Any) -> float:
    """Each batch is normalised in place on the device, so the next one is written over bytes that came down for it."""
    batch, total = Blob((SIZE,), device=device), 0.0
    for images in batches():
        batch.mutable_cpu_data()[:] = images  # waste
        batch.gpu_data()
        batch.scale_data(0.5)
        total += batch.asum_data()
    return total


def hands_the_batch_over(device: Any) -> float:
    """The same: the array that was read is the host side, and nothing comes down."""
    batch, total = Blob((SIZE,), device=device), 0.0
    for images in batches():
        batch.set_cpu_data(images)
        batch.gpu_data()
        batch.scale_data(0.5)
        total += batch.asum_data()
    return total


# --- pageable memory


def reads_into_an_array_of_numpy(device: Any) -> float:
    """Frames are read into one array, which the blob has adopted."""
    frame, total = Blob((SIZE,), device=device), 0.0
    buffer = np.empty(SIZE, np.float32)
    frame.set_cpu_data(buffer)
    for images in batches():
        frame.mutable_cpu_data()[:] = images
        frame.gpu_data()  # waste
        total += frame.asum_data()
    return total


def reads_into_page_locked_memory(device: Any) -> float:
    """The same: the device has locked the pages of the array."""
    frame, total = Blob((SIZE,), device=device), 0.0
    buffer = device.pinned_host().allocate(SIZE * 4)
    frame.set_cpu_data(buffer.view(np.float32))
    for images in batches():
        frame.mutable_cpu_data()[:] = images
        frame.gpu_data()
        total += frame.asum_data()
    return total


WASTE = {
    "ping-pong": Waste(cools_and_holds_the_end_on_the_host, cools_and_holds_the_end_on_the_device, 1),
    "norm": Waste(descends_and_asks_numpy_for_the_norm, descends_and_asks_the_blob_for_the_norm, 1),
    "each iteration": Waste(sends_the_table_each_time, sends_the_table_once, 1),
    "debugger": Waste(descends_and_shows_the_numbers, descends_and_shows_the_blob, 1),
    "overwritten unread": Waste(fills_the_batch_again, hands_the_batch_over, STEPS),
}

PAGEABLE = Waste(reads_into_an_array_of_numpy, reads_into_page_locked_memory, STEPS)
"""This one makes no copy too many; its copies are slow."""
