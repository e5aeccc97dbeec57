"""Finds the runtime's modules that cannot run on this machine, so that coverage does not count them, and says why."""

from __future__ import annotations

import sys

from syncedmem.runtime import probe

KERNELS = ("runtime/devices/opencl_kernels.py",)


def uncounted() -> dict[str, str]:
    """Return the modules that cannot run here, each with the reason."""
    found = {report.name: report for report in probe()}
    if found["opencl"].compiler:
        return {}
    return dict.fromkeys(KERNELS, f"no OpenCL kernels here: {found['opencl'].limits or found['opencl'].detail}")


if __name__ == "__main__":
    for module, reason in uncounted().items():
        sys.stderr.write(f"{module} is not counted: {reason}\n")
    sys.stdout.write(",".join(uncounted()))
