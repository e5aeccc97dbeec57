"""Caffe's own tests of ``SyncedMemory``: seven tests, and the calls that each makes.

They come from ``src/caffe/test/test_syncedmem.cpp`` of BVLC/caffe 9b8915401.  Coverage shows what these tests leave
out.
"""

from __future__ import annotations

from typing import NamedTuple

from syncedmem.model import Call, caffe

__all__ = ["CAFFE_TESTS", "CAFFE_TESTS_FILE", "CaffeTest"]

CAFFE_TESTS_FILE = "src/caffe/test/test_syncedmem.cpp"


class CaffeTest(NamedTuple):
    """One of Caffe's tests.

    Attributes
    ----------
    name : str
    size : int
        The size of its memory in bytes.
    calls : tuple of Call
        In order, without the destructor, which comes last.
    """

    name: str
    size: int
    calls: tuple[Call, ...]


_SIZE = 10
_ROUNDS = 2
_CPU_WRITE, _GPU_WRITE = caffe.MUTABLE_CPU_DATA, caffe.MUTABLE_GPU_DATA

CAFFE_TESTS: tuple[CaffeTest, ...] = (
    CaffeTest("TestInitialization", _SIZE, ()),
    CaffeTest("TestAllocationCPUGPU", _SIZE, (caffe.CPU_DATA, caffe.GPU_DATA, _CPU_WRITE, _GPU_WRITE)),
    CaffeTest("TestAllocationCPU", _SIZE, (caffe.CPU_DATA, _CPU_WRITE)),
    CaffeTest("TestAllocationGPU", _SIZE, (caffe.GPU_DATA, _GPU_WRITE)),
    CaffeTest("TestCPUWrite", _SIZE, (_CPU_WRITE,) * _ROUNDS),
    CaffeTest("TestGPURead", _SIZE, (_CPU_WRITE, caffe.GPU_DATA) * _ROUNDS),
    CaffeTest("TestGPUWrite", _SIZE, (_GPU_WRITE, caffe.CPU_DATA) * _ROUNDS),
)
"""The tests in the order of the file."""
