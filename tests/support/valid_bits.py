"""Makes calls of MFEM's own vectors, and prints which of their two arrays MFEM calls valid: for `test_real_mfem.py`.

Run by a Python that has the package ``mfem``.  On standard input is a JSON list of sequences of calls; on standard
output, for each, the list of the bits before the first call and after each.  The device is MFEM's ``debug`` one, which
has an array of its own on any machine.
"""

from __future__ import annotations

import ctypes
import json
import sys
from importlib import import_module
from typing import Any

mfem: Any = import_module("mfem.ser")  # codespell:ignore ser

_VALID = {0x10: "VALID_HOST", 0x20: "VALID_DEVICE", 0x30: "VALID_BOTH"}
"""general/mem_manager.hpp, Memory::FlagMask."""
_FLAGS_AT = 16
"""Where Memory<double> has its flags: after the pointer, the capacity and the memory type."""


def bits_of(vector: Any) -> str:
    """The valid bits, as the machine calls its heads."""
    flags = ctypes.c_uint.from_address(int(vector.GetMemory()) + _FLAGS_AT).value
    return _VALID[flags & max(_VALID)]


def main() -> None:
    """Answer all sequences, each with a vector of its own."""
    device = mfem.Device("debug")
    answers: list[list[str]] = []
    for calls in json.load(sys.stdin):
        vector = mfem.Vector(8)
        vector.UseDevice(True)
        seen = [bits_of(vector)]
        for call in calls:
            getattr(vector, call)()
            seen.append(bits_of(vector))
        answers.append(seen)
    del device
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
