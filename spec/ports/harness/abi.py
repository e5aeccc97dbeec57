"""The C ABI of ports, as its header declares it: the numbers, and the structures with their functions.

The header beside this file is made from the model, and is the only declaration of the ABI.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import POINTER, c_char_p, c_void_p
from pathlib import Path
from typing import Any

__all__ = [
    "ABI_VERSION",
    "BLOBS_VERSION",
    "BLOB_CALLS",
    "BLOB_TYPES",
    "CALLS",
    "FLAGS",
    "HEADS",
    "KINDS",
    "LAUNCH",
    "MODES",
    "OPTIONS",
    "REFUSALS",
    "SIDES",
    "STATUSES",
    "STRUCTURES",
]

_TEXT = Path(__file__).with_name("syncedmem_port.h").read_text(encoding="utf-8")
_HEADER = re.sub(r"/\*.*?\*/", "", _TEXT, flags=re.DOTALL)


def _numbers(prefix: str) -> dict[str, int]:
    """The numbers whose names begin with a prefix, by the rest of their names in lower case."""
    return {name.lower(): int(number) for name, number in re.findall(rf"SMP_{prefix}(\w+) = (\d+)", _HEADER)}


def _enumeration(member: str) -> dict[str, int]:
    """The numbers of the enumeration that has this member."""
    (body,) = re.findall(rf"enum \{{([^}}]*\bSMP_{member}\b[^}}]*)\}}", _HEADER)
    return {name: int(number) for name, number in re.findall(r"SMP_(\w+) = (\d+)", body)}


def _defined(name: str) -> int:
    (number,) = re.findall(rf"#define SMP_{name} (\d+)", _HEADER)
    return int(number)


ABI_VERSION, BLOBS_VERSION, SIDES = map(_defined, ("ABI_VERSION", "BLOBS_VERSION", "SIDES"))
STATUSES, KINDS = _enumeration("OK"), _enumeration("PINNED")
HEADS = tuple(_enumeration("UNINITIALIZED"))
CALLS, BLOB_CALLS = tuple(_numbers("CALL_")), tuple(_numbers("BLOB_"))
MODES, FLAGS, OPTIONS = (_numbers(prefix) for prefix in ("MODE_", "FLAG_", "OPTION_"))
REFUSALS = {number: name for name, number in _numbers("REFUSED_").items()}
BLOB_TYPES = {name.lower(): int(re.sub(r"\D", "", name)) // 8 for name in _enumeration("FLOAT32")}
"""The size of an element of each type."""

_TYPES: dict[str, Any] = {
    "void": None,
    "int": ctypes.c_int,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
}
_POINTERS: dict[str, Any] = {"void": c_void_p, "char": c_char_p}


_pointer_to: Any = POINTER


def _type(base: str, stars: str) -> Any:
    if not stars:
        return _TYPES[base]
    kind = _POINTERS[base] if base in _POINTERS else _pointer_to(_TYPES[base])
    for _ in stars[1:]:
        kind = _pointer_to(kind)
    return kind


_FUNCTION = re.compile(r"(\w+) \(\*(\w+)\)\((.*)\)")
_VARIABLES = re.compile(r"(?:const )?(\w+) (\**)(\w+(?:, \w+)*)(?:\[SMP_(\w+)\])?")


def _members(declaration: str) -> list[tuple[str, Any]]:
    """The names and the types that a declaration declares; a function is a pointer to it."""
    if function := _FUNCTION.fullmatch(declaration):
        result, name, arguments = function.groups()
        kinds = [
            c_void_p if "(*" in argument else _members(argument.strip())[0][1] for argument in arguments.split(",")
        ]
        return [(name, ctypes.CFUNCTYPE(_TYPES[result], *kinds))]
    variables = _VARIABLES.fullmatch(declaration)
    assert variables is not None, declaration  # noqa: S101 -- the header is ours
    base, stars, names, length = variables.groups()
    kind = _type(base, stars) * _defined(length) if length else _type(base, stars)
    return [(name, kind) for name in names.split(", ")]


for _match in re.finditer(r"typedef (?:struct (\w+) \{(.*?)\} \1|(int \(\*\w+\)\(.*?\)));", _HEADER, re.DOTALL):
    _name, _body, _function = _match.groups()
    if _function:
        _TYPES.update(_members(_function))
    else:
        _fields = [member for part in _body.split(";") if part.strip() for member in _members(" ".join(part.split()))]
        _TYPES[_name] = type(_name, (ctypes.Structure,), {"_fields_": _fields})

STRUCTURES: dict[str, Any] = {name.removeprefix("smp_"): kind for name, kind in _TYPES.items() if name[:4] == "smp_"}
"""The structures by their names without ``smp_``."""

LAUNCH = STRUCTURES.pop("launch")
"""The type of the function that runs a kernel."""
