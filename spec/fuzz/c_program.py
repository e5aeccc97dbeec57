"""Writes the program of a finding in C, which calls the functions of the target and needs nothing of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .driver import PAIRED, RESIZED, SHRUNK, ZEROED
from .finding import OPERATIONS
from .loops import Repeat, folded
from .native import ABIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .finding import Finding, HeapStep

__all__ = ["CProgram", "c_program"]

_LONGEST = 64
"""A program of more steps and loops is not written."""
_TYPES = {"s": "size_t", "1": "size_t", "i": "int", "": "void"}
_POSIX = "int {}(void **, size_t, size_t);"
_SIGNED = (1 << 63) - 1
_FIXED = {"c": "NULL", "0": "0", "1": "1"}

_FRAME = """\
/* Found by syncedmem fuzz: {requirement}: {message}

   cc -g {file} {link} -o try && ./try */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

{prototypes}

static struct block {{ unsigned char *at; size_t size; }} block[{blocks}];

static void wrong(int number, const char *what) {{
    printf("block %d: %s\\n", number, what);
    exit(1);
}}

static unsigned char pattern(int number, size_t at) {{ return (unsigned char)(number * 41 + at * 7 + at / 251 + 1); }}

static void fill(int number) {{
    for (size_t i = 0; block[number].at && i < block[number].size; i++) block[number].at[i] = pattern(number, i);
}}

static void look(int number) {{
    for (size_t i = 0; block[number].at && i < block[number].size; i++)
        if (block[number].at[i] != pattern(number, i)) wrong(number, "its bytes have changed");
}}

/* A new block is where it should be, and shares no byte with another one. */
static void take(int number, void *at, size_t size, size_t alignment) {{
    unsigned char *start = at;
    if (!at) printf("block %d: null for %zu bytes\\n", number, size);
    if (alignment && (uintptr_t)at % alignment) wrong(number, "it is not aligned");
    for (int i = 0; at && i < {blocks}; i++)
        if (i != number && block[i].at && block[i].at < start + size && start < block[i].at + block[i].size)
            wrong(number, "it has bytes of another block");
    block[number] = (struct block){{start, size}};
    fill(number);
}}

static void zeroed(int number, unsigned char *at, size_t size) {{
    for (size_t i = 0; at && i < size; i++)
        if (at[i]) wrong(number, "it is not zero");
    take(number, at, size, 0);
}}

/* A resized block has kept its bytes, up to the smaller size. */
static void change(int number, void *at, size_t size) {{
    size_t before = block[number].size;
    if (!at) return;
    block[number] = (struct block){{at, before < size ? before : size}};
    look(number);
    take(number, at, size, 0);
}}

/* A block that is freed now. */
static void *leave(int number) {{
    void *at = block[number].at;
    look(number);
    block[number].at = NULL;
    return at;
}}

static long resident(void) {{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * 4096;
}}

int main(void) {{
    long before = resident();
{calls}
    for (int i = 0; i < {blocks}; i++) {{
        size_t size = block[i].size;
        (void)size;
        if (block[i].at) {end};
    }}
    printf("no block was wrong; the process grew by %ld bytes\\n", resident() - before);
}}
"""


class CProgram(NamedTuple):
    """The whole text, and of it the lines that make the calls."""

    text: str
    calls: tuple[str, ...]


def c_program(finding: Finding, target: str, parts: Mapping[str, str], file: str) -> CProgram | None:
    """The program of a finding in C; None if the target has no functions in C, or if a step has no form there.

    Parameters
    ----------
    finding : Finding
    target : str
        The target as the user named it: a library, or a source.
    parts : mapping of str to str
        The symbol of each part of the convention that the library has.
    file : str
        The name of the file that the program will have.
    """
    abi = target.rpartition("abi=")[2].partition("&")[0] if "?abi=" in target else "malloc"
    items = folded(finding.program)
    if not parts or not finding.repeats or not 0 < len(items) <= _LONGEST or abi not in ABIS or "make" in parts:
        return None
    writer = _Writer(abi, parts)
    try:
        calls = tuple(line for item in items for line in writer.lines(item))
        end = writer.end()
    except _NoFormError:
        return None
    text = _FRAME.format(
        requirement=finding.requirement,
        message=finding.message.replace("*/", "* /"),
        file=file,
        link=_link(target.partition("?")[0].rpartition(":")[0]),
        prototypes="\n".join(writer.prototypes()),
        blocks=writer.blocks,
        end=end,
        calls="\n".join(f"    {line}" for line in calls),
    )
    return CProgram(text, calls)


def _link(place: str) -> str:
    """What a compiler is told of the target."""
    if Path(place).suffix in {".c", ".cc", ".cpp", ".cxx"}:
        return str(Path(place).resolve()) + (" -lstdc++" if Path(place).suffix != ".c" else "")
    there = Path(place).resolve()
    return f"{there} -Wl,-rpath,{there.parent}" if "/" in place else f"-l:{place}"


class _NoFormError(Exception):
    """A step has no form in C."""


class _Writer:
    """Writes steps as calls of the functions of one library, and knows how each block was requested.

    Which of several functions is called is as in `c_functions`.
    """

    def __init__(self, abi: str, parts: Mapping[str, str]) -> None:
        self._abi, self._parts = ABIS[abi], parts
        self.blocks = 1
        """The number of blocks."""
        self._requests: dict[int, tuple[int, int]] = {}
        """The alignment and size of each request; alignment 0 for posix_memalign, and -1 for a plain one."""
        self._used: dict[str, None] = {}

    def prototypes(self) -> Iterator[str]:
        """A declaration of each function that is called."""
        for part in self._used:
            if part == "posix_memalign":
                yield _POSIX.format(self._parts[part])
                continue
            arguments, _, result = self._abi.calls.get(part, "").partition(":")
            types = ", ".join(_TYPES.get(letter, "void *") for letter in arguments) or "void"
            yield f"{_TYPES.get(result, 'void *')} {self._parts[part]}({types});".replace("* ", "*")

    def lines(self, item: HeapStep | Repeat) -> list[str]:
        """The lines of a step or a loop."""
        if not isinstance(item, Repeat):
            return self._step(item, "")
        moving = "" if not item.stride else "i" if item.stride == 1 else f"{item.stride} * i"
        body = [f"    {line}" for step in item.body for line in self._step(step, moving)]
        self.blocks += item.stride * (item.times - 1)
        return [f"for (int i = 0; i < {item.times}; i++) {{", *body, "}"]

    def _step(self, step: HeapStep, moving: str) -> list[str]:
        named = dict(zip(OPERATIONS[step.operation], step.numbers, strict=True))
        block = named.get("block", 0)
        self.blocks = max(self.blocks, block + 1)
        at = f"{moving} + {block}" if moving and block else moving or str(block)
        if step.operation in {"compare", "check"}:
            return [f"look({at});"] * (step.operation == "check")
        if step.operation not in _WRITERS or named.get("stream"):
            raise _NoFormError
        return _WRITERS[step.operation](self, block, at, named)

    def end(self) -> str:
        """The free of a block at the end, if it is still live."""
        return self._call("free", ("leave(i)",), ("size",))

    def _call(self, part: str, pointers: Sequence[str], sizes: Sequence[int | str]) -> str:
        """A call of the function of a part, with these pointers and sizes in their order."""
        if part not in self._parts:
            raise _NoFormError
        self._used[part] = None
        given = {
            "p": iter(pointers),
            "s": (f"{it}u" if isinstance(it, int) and it > _SIGNED else str(it) for it in sizes),
        }
        arguments = self._abi.calls.get(part, "").partition(":")[0]
        return f"{self._parts[part]}({', '.join(_FIXED[it] if it in _FIXED else next(given[it]) for it in arguments)})"

    def allocate(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        size, alignment = named["size"], named["alignment"]
        if not alignment:
            self._requests[block] = -1, size
            return [f"take({at}, {self._call('malloc', (), (size,))}, {size}, 0);"]
        if "aligned_alloc" not in self._parts or (size % 2 and "posix_memalign" in self._parts):
            self._requests[block] = 0, size
            call = self._call("posix_memalign", ("&place",), (max(alignment, 8), size))
            return ["{", "    void *place = NULL;", f"    if (!{call}) take({at}, place, {size}, {alignment});", "}"]
        whole = -(-size // alignment) * alignment
        self._requests[block] = alignment, whole
        return [f"take({at}, {self._call('aligned_alloc', (), (alignment, whole))}, {size}, {alignment});"]

    def calloc(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        self._requests[block] = -1, named["size"]
        return [f"zeroed({at}, {self._call('calloc', (), (named['size'],))}, {named['size']});"]

    def free(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        del named
        alignment, size = self._requests.get(block, (-1, 0))
        return [f"{self._given_back(f'leave({at})', alignment, size)};"]

    def _given_back(self, pointer: str, alignment: int, size: int) -> str:
        if alignment > 0 and "free_aligned_sized" in self._parts and "free_sized" in self._parts:
            return self._call("free_aligned_sized", (pointer,), (alignment, size))
        sized = alignment < 0 and not size % 2 and "free_sized" in self._parts
        return self._call("free_sized" if sized else "free", (pointer,), (size,))

    def resize(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        self._requests[block] = -1, named["size"]
        return [f"look({at});", f"change({at}, {self._resized(f'block[{at}].at', named['size'])}, {named['size']});"]

    def _resized(self, pointer: str, size: int) -> str:
        if "reallocarray" in self._parts and not (size % 2 and "realloc" in self._parts):
            count = 1 if size % 2 else 2
            return self._call("reallocarray", (pointer,), (count, size // count))
        return self._call("realloc", (pointer,), (size,))

    def use_all(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        del block, named
        call = self._call("malloc_usable_size", (f"block[{at}].at",), ())
        return [f"look({at});", f"block[{at}].size = {call};", f"fill({at});"]

    def too_much(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        del block, at
        alignment, size = named["alignment"], named["size"]
        if alignment and "aligned_alloc" in self._parts:
            call = self._call("aligned_alloc", (), (alignment, size - size % alignment))
        elif alignment:
            raise _NoFormError
        else:
            call = self._call("malloc", (), (size,))
        return [f'if ({call}) wrong(-1, "a request for more than there can be was met");']

    def resize_too_much(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        del block
        call = self._call("realloc", (f"block[{at}].at",), (named["size"],))
        return [f'if ({call}) wrong({at}, "a resize to more than there can be was met");', f"look({at});"]

    def cycle(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        del block, at
        size, how = named["size"], named["how"]
        first = max(size // 2, 1) if how == RESIZED else size
        last = max(size // 8, 1) if how == SHRUNK else size
        lines = [f"unsigned char *at = {self._call('calloc' if how == ZEROED else 'malloc', (), (first,))};"]
        if how == ZEROED:
            lines += [f'for (size_t j = 0; at && j < {first}; j++) if (at[j]) wrong(-1, "it is not zero");']
        lines += ["if (!at) break;", f"memset(at, 90, {first});"]
        lines += [f"at = {self._resized('at', last)};"] if first != last else []
        if how == PAIRED:
            lines += [f"void *other = {self._call('malloc', (), (first,))};"]
        lines += [f"{self._given_back(it, -1, last)};" for it in (("at", "other") if how == PAIRED else ("at",))]
        return [f"for (int i = 0; i < {named['count']}; i++) {{", *(f"    {line}" for line in lines), "}"]

    def reset(self, block: int, at: str, named: dict[str, int]) -> list[str]:
        del block, at, named
        return [f"{self._call('reset', (), ())};"]


_WRITERS = {
    "allocate": _Writer.allocate,
    "calloc": _Writer.calloc,
    "free": _Writer.free,
    "resize": _Writer.resize,
    "use_all": _Writer.use_all,
    "request_too_much": _Writer.too_much,
    "resize_too_much": _Writer.resize_too_much,
    "cycle": _Writer.cycle,
    "reset": _Writer.reset,
}
"""How each step is written."""
