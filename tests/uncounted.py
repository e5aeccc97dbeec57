"""Which modules of the runtime cannot run on this machine, so that coverage does not count them; and why."""

from __future__ import annotations

import sys

from syncedmem.runtime import probe

CUDA = ("runtime/cuda.py", "runtime/vectors/cuda.py", "runtime/interop/foreign_cuda.py")
KERNELS = ("runtime/vectors/opencl_kernels.py",)


def uncounted() -> dict[str, str]:
    """The modules that cannot run here, each with the reason."""
    found = {report.name: report for report in probe()}
    reasons: dict[str, str] = {}
    if not found["cuda"].available:
        reasons |= dict.fromkeys(CUDA, f"no GPU here: {found['cuda'].detail}")
    if not found["opencl"].compiler:
        reasons |= dict.fromkeys(KERNELS, f"no OpenCL kernels here: {found['opencl'].limits or found['opencl'].detail}")
    return reasons


if __name__ == "__main__":
    for module, reason in uncounted().items():
        sys.stderr.write(f"{module} is not counted: {reason}\n")
    sys.stdout.write(",".join(uncounted()))
