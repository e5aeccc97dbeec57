# type: ignore  # types everywhere would double a program that is here to be read
"""What syncedmem_port.h says of blobs."""

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)

from lent import Allocators

CALLS = (
    "reshape", "reshape_like", "shrink_to_fit", "shape_string", "canonical_axis_index", "count_axes",
    "legacy_shape", "num", "channels", "height", "width", "offset", "data_at", "diff_at", "gpu_shape", "cpu_data",
    "mutable_cpu_data", "gpu_data", "mutable_gpu_data", "cpu_diff", "mutable_cpu_diff", "gpu_diff",
    "mutable_gpu_diff", "set_cpu_data", "set_gpu_data", "set_cpu_diff", "set_gpu_diff", "share_data", "share_diff",
    "copy_from", "update", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff", "scale_data", "scale_diff",
)  # fmt: skip
TYPES = {"float32": "f", "float64": "d", "int32": "i", "uint32": "I", "float16": "e"}
SEQUENCE, COPY_DIFF, RESHAPE = 1, 2, 4


class Asked(Structure):
    _fields_ = [("call", c_uint32), ("mode", c_uint32), ("options", c_uint32), ("count", c_size_t),
                ("numbers", POINTER(c_int64)), ("factor", c_double), ("other", c_void_p), ("data", c_void_p),
                ("data_size", c_size_t), ("data_kind", c_uint32)]  # fmt: skip


class Result(Structure):
    _fields_ = [("view", c_void_p), ("number", c_double), ("text", c_char_p), ("message", c_char_p)]


class Part(Structure):
    _fields_ = [("memory", c_void_p), ("cpu", c_void_p), ("gpu", c_void_p), ("head", c_uint32), ("size", c_size_t)]


class State(Structure):
    _fields_ = [("axes", c_size_t), ("shape", c_int64 * 32), ("count", c_int64), ("capacity", c_int64), ("data", Part),
                ("diff", Part)]  # fmt: skip


KERNEL = CFUNCTYPE(None, c_void_p)
LAUNCH = CFUNCTYPE(c_int, c_void_p, KERNEL, c_void_p)


class Blobs(Structure):
    _fields_ = [("version", c_uint32),
                ("create", CFUNCTYPE(c_int, POINTER(Allocators), LAUNCH, c_uint32, POINTER(c_void_p))),
                ("call", CFUNCTYPE(c_int, c_void_p, POINTER(Asked), POINTER(Result))),
                ("state", CFUNCTYPE(None, c_void_p, POINTER(State))),
                ("destroy", CFUNCTYPE(None, c_void_p))]  # fmt: skip


@LAUNCH
def launch(_, kernel, argument):
    """Run a kernel of the port, here as a function of the host."""
    kernel(argument)
    return 0
