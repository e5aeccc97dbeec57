"""Harnesses for fuzzers that see coverage: `harness_of` writes one in C, with the oracle of the native driver.

libFuzzer and AFL++ see which lines of a target an input reaches, and with which numbers it compares.  So they find what
only one size of many thousands reaches.  They do not find more of what takes many calls in the right order.
"""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from syncedmem.model.defaults import FUZZ

from .capabilities import Capabilities
from .finding import TargetError
from .isolation import Isolated
from .kit import described
from .native import LibraryAddress
from .native_driver.building import built, source_of
from .native_driver.running import ABIS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Harness", "harness_of"]

_SOURCES = Path(__file__).parent / "native_driver"
_MACROS = {"malloc": "TAKE", "free": "GIVE", "calloc": "TAKE_ZEROED", "realloc": "CHANGE", "reset": "RESET"}
"""The macro of harness.c for the symbol of each part."""
_UNSEEN = """
/* A fuzzer looks at the code of the target alone: the oracle would show it something new all the time. */
#if defined __clang__ && __clang_major__ >= 13
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)
#endif
"""
_READABLE = {None: -1, False: 0, True: 1}


class Harness(NamedTuple):
    """A harness, and how it is used.

    Attributes
    ----------
    text : str
        The source in C.
    commands : dict of str to str
        For each purpose the commands of a shell.
    """

    text: str
    commands: dict[str, str]


def harness_of(target: str, file: str, promises: Mapping[str, str] | None = None, hang: float = FUZZ.hang) -> Harness:
    """Make a harness for functions in C.

    An input is a program of calls.  The oracle judges each, and ends the process at the first violation, with the
    program as Python.  At the end of an input everything is freed.  A target with a part ``reset`` begins each input
    anew.  Without one it goes on as the last input has left it, and one input alone may not show a violation again.

    Parameters
    ----------
    target : str
        A source or a shared library with its functions, as for `fuzz`.
    file : str
        Where the text will be, for the commands.
    promises : mapping of str to str or None
        As for `fuzz`.
    hang : float
        The seconds after which opening the target hangs.

    Raises
    ------
    TargetError
        If the target cannot be opened, or is no functions that C can call by their names.
    """
    with Isolated(target, hang) as place:
        answer = described(place, target, promises)
    library = LibraryAddress.parse(built(target).target)
    parts: dict[str, str] = answer["parts"]
    if library is None or library.abi not in ABIS:
        raise TargetError(f"{target}: a harness needs functions in C, of {', '.join(ABIS)}")
    if "make" in parts:
        raise TargetError(f"{target}: a harness cannot call {parts['make']}; give the library reset=, or no state")
    commands = _commands(target, library.path, file)
    record = Capabilities().with_promises(answer["capabilities"])
    given = "".join(f", {name}={value!r}" for name, value in (promises or {}).items())
    lines = [
        f"/* A harness of syncedmem {metadata.version('syncedmem')} for the allocator",
        f"   {target.replace('*/', '* /')}",
        "",
        "   An input is a program of calls, and the oracle judges each.",
        *(f"   {purpose}: {command}" for purpose, command in commands.items()),
        "   With SYNCEDMEM_SHOW=1 in the environment each call is shown before it is made. */",
        "",
        *(f"#define {_MACROS[part]} {_quoted(symbol)}" for part, symbol in parts.items() if part in _MACROS),
        _UNSEEN,
        "#define QUOTED_LATER(text) #text",
        "#define QUOTED(text) QUOTED_LATER(text)",
        "#define SYMBOL(name) QUOTED(__USER_LABEL_PREFIX__) name",
        f"#define ABI {library.abi.upper()}",
        f"#define ARGUMENTS {_quoted(repr(target) + given)}",
        f"#define READABLE {_READABLE[record.host_readable]}",
        f"#define PROMISES {{.alignment = {record.alignment}, .zero_size = ZERO_{record.zero_size.upper()}, \\",
        f"    .zeroed = {int(record.zeroed)}, .null = {int('null' in record.out_of_memory)}}}",
        "",
    ]
    sources = [(_SOURCES / name).read_text(encoding="utf-8") for name in ("oracle.h", "harness.c")]
    end = "\n#if defined __clang__ && __clang_major__ >= 13\n#pragma clang attribute pop\n#endif\n"
    return Harness("\n".join(lines) + "\n".join(sources) + end, commands)


def _quoted(text: str) -> str:
    """A text as a literal in C."""
    return json.dumps(text)


def _commands(target: str, library: str, file: str) -> dict[str, str]:
    """What builds the harness with each fuzzer, and what runs it."""
    source = source_of(target)
    plus = "" if source is None or source.suffix == ".c" else "++"  # compilers of C++ take a file in C for C++
    first = shlex.quote(str(source or (library if "/" in library else f"-l:{library}")))
    code = f"{first} -x c {shlex.quote(file)}" if plus else f"{shlex.quote(file)} {first}"
    name = Path(file).stem
    return {
        "libFuzzer": f"clang{plus} -g -O1 -fsanitize=fuzzer {code} -o {name} && "
        f"./{name} -use_value_profile=1 -max_len=512",
        "AFL++": f"afl-clang-fast{plus} -g -O1 -fsanitize=fuzzer {code} -o {name}-afl && "
        f"mkdir -p seeds && echo 0 > seeds/0 && afl-fuzz -i seeds -o found -- ./{name}-afl",
        "one input": f"c{plus or 'c'} -g -DSTANDALONE {code} -o {name}-once && ./{name}-once FILE",
    }
