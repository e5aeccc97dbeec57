"""OpenCL kernels.  These tests alone need a device whose compiler works; what it computes is in test_vectors.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syncedmem.model import NoArithmeticError, NoDeviceError
from syncedmem.runtime.vectors import opencl_kernels
from syncedmem.runtime.vectors.opencl_kernels import Compiler, KernelVectors, compiler_of

try:
    import syncedmem.runtime.opencl as opencl_module

    verdict = opencl_module.OpenCLDeviceAllocator().compiler
except NoDeviceError as error:
    pytest.skip(f"no OpenCL here: {error}", allow_module_level=True)
pytestmark = pytest.mark.skipif(not verdict.works, reason=f"the compiler of OpenCL fails here: {verdict.reason}")

cl: Any = opencl_module.cl


@pytest.fixture
def device() -> Any:
    """The first device, with a context of the test's own."""
    return opencl_module.OpenCLDeviceAllocator()


def test_a_device_without_doubles_computes_in_floats(device: Any) -> None:
    """Then it has no arithmetic on doubles, and its sums are as wide as a float."""
    vectors = KernelVectors(device.name, device.queue, cl, device.overlaps, fp64=False)
    x = device.empty(4000).view(np.float32)
    x.set(np.full(1000, 0.5, np.float32))
    vectors.axpy(2.0, x, x)

    assert vectors.asum(x) == 1500
    assert vectors.sumsq(x) == 2250
    with pytest.raises(
        NoArithmeticError, match=r"scal is not for elements of type float64; it is for float16, .*, float32$"
    ):
        vectors.scal(2.0, device.empty(16).view(np.float64))


def test_a_kernel_that_does_not_run_as_written_is_a_compiler_that_fails(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each planted where the verdict is made: nothing comes back, and an error comes back."""
    copy = cl.enqueue_copy

    def nothing(*_: Any, **__: Any) -> None:
        pass

    def refuse(*_: Any, **__: Any) -> None:
        raise cl.LogicError("enqueue_copy", -5, "out of resources")

    for planted, reason in ((nothing, "a kernel that had to write 42 wrote 0"), (refuse, "enqueue_copy")):
        monkeypatch.setattr(cl, "enqueue_copy", planted)
        opencl_kernels.try_compiler.cache_clear()
        found = compiler_of(device.queue.device, cl)
        assert not found.works
        assert found.reason.startswith(reason)
    monkeypatch.setattr(cl, "enqueue_copy", copy)
    opencl_kernels.try_compiler.cache_clear()
    assert Compiler(works=True, reason="") == compiler_of(device.queue.device, cl)
