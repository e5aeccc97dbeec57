"""One step of gradient descent on a blob.  After each line it prints which sides are fresh."""

from __future__ import annotations

import numpy as np

from syncedmem import Blob


def show(line: str, weights: Blob[np.float32]) -> None:
    """Print a line of the program, and the heads of data and diff after it."""
    print(f"{line:56} data {weights.data_memory.head.name:14} diff {weights.diff_memory.head.name}")


def main() -> None:
    """Forward, backward, update: one step."""
    weights = Blob((2, 3))
    show("weights = Blob((2, 3))", weights)

    weights.data = [[1, 2, 3], [4, 5, 6]]
    show("weights.data = [[1, 2, 3], [4, 5, 6]]", weights)

    device_side = weights.gpu_data()
    show("device_side = weights.gpu_data()   # forward", weights)

    weights.mutable_gpu_diff().set(device_side.get() * 2)
    show("weights.mutable_gpu_diff().set(...)   # backward", weights)

    weights.scale_diff(0.1)
    show("weights.scale_diff(0.1)   # the learning rate", weights)

    weights.update()
    show("weights.update()", weights)

    loss = weights.sumsq_data()
    show("loss = weights.sumsq_data()", weights)

    first = weights.data[0, 0]
    show("first = weights.data[0, 0]", weights)
    assert np.isclose(first, 0.8)  # noqa: S101 -- the example checks its own result
    assert np.isclose(loss, 0.64 * 91)  # noqa: S101 -- as above


if __name__ == "__main__":
    main()
