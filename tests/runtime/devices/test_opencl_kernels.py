"""OpenCL kernels.  These tests alone need a device whose compiler works; what it computes is in test_vectors.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from syncedmem.model import NoArithmeticError, NoDeviceError
from syncedmem.runtime.devices.opencl_kernels import KernelArithmetic

try:
    import syncedmem.runtime.devices.opencl as opencl_module

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
    """Then it has no arithmetic on doubles, and computes sums in float."""
    vectors = KernelArithmetic(device.name, device.current_stream, cl, device.overlaps, fp64=False)
    x = device.empty(4000).view(np.float32)
    x.set(np.full(1000, 0.5, np.float32))
    vectors.axpy(2.0, x, x)

    assert vectors.asum(x) == 1500
    assert vectors.sumsq(x) == 2250
    with pytest.raises(
        NoArithmeticError, match=r"scal is not for elements of type float64; it is for float16, .*, float32$"
    ):
        vectors.scal(2.0, device.empty(16).view(np.float64))
