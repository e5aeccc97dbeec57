"""Writes the program of a finding in C, which calls the functions of the target and needs nothing of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .c_functions import RESET, Choice
from .driver import CROWDED, PAIRED, RESIZED, SHRUNK, ZEROED
from .loops import Repeat, folded
from .native import ABIS, abi_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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

/* A reset takes all blocks back. */
static void leave_all(void) {{
    for (int i = 0; i < {blocks}; i++) leave(i);
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
    abi, items = abi_of(target), folded(finding.program)
    if not parts or not finding.repeats or not 0 < len(items) <= _LONGEST or abi not in ABIS or "make" in parts:
        return None
    writer = _Writer(abi, parts)
    try:
        begin = [f"{writer.call(RESET, (), ())};"] if RESET in parts else []
        calls = (*begin, *(line for item in items for line in writer.lines(item)))
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
    """Writes steps as calls of the functions of one library."""

    def __init__(self, abi: str, parts: Mapping[str, str]) -> None:
        self._abi, self._parts, self._choice = ABIS[abi], parts, Choice(parts)
        self.blocks = 1
        """The number of blocks."""
        self._sizes: dict[int, int] = {}
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
        named = step.named
        block, size = named.get("block", 0), named.get("size", 0)
        self.blocks = max(self.blocks, block + 1)
        at = f"{moving} + {block}" if moving and block else moving or str(block)
        if named.get("stream") or step.operation not in {"cycle", "free", *_LINES}:
            raise _NoFormError
        if named.get("alignment"):
            return self._aligned(step.operation, block, at, size, named["alignment"])
        if step.operation == "cycle":
            return self._cycle(size, named["count"], named["how"])
        if step.operation == "free":
            return [f"{self._freed(f'leave({at})', block, self._sizes.get(block, 0))};"]
        if step.operation == RESET:
            self._choice.requests.clear()
        if step.operation in {"allocate", "calloc", "resize"}:
            self._sizes[block] = size
            self._choice.requests.pop(block, None)
        return _LINES[step.operation](self, at, size)

    def end(self) -> str:
        """The free of a block at the end, if it is still live."""
        return self.call("free", ("leave(i)",), ("size",))

    def call(self, part: str, pointers: Sequence[str], sizes: Sequence[int | str]) -> str:
        """A call of the function of a part, with these pointers and sizes in their order."""
        if part not in self._parts:
            raise _NoFormError
        self._used[part] = None
        given = {
            "p": iter(pointers),
            "s": (f"{size}u" if isinstance(size, int) and size > _SIGNED else str(size) for size in sizes),
        }
        letters = self._abi.calls.get(part, "").partition(":")[0]
        texts = [_FIXED[letter] if letter in _FIXED else next(given[letter]) for letter in letters]
        return f"{self._parts[part]}({', '.join(texts)})"

    def _aligned(self, operation: str, block: int, at: str, size: int, alignment: int) -> list[str]:
        """The lines of an aligned request, which is to be met or to be refused."""
        part, *numbers = request = self._choice.aligned(size, alignment)
        call = self.call(part, ("&place",), numbers)
        if operation == "allocate":
            self._sizes[block], self._choice.requests[block] = size, request
        if part == "aligned_alloc":
            return [f"take({at}, {call}, {size}, {alignment});" if operation == "allocate" else _refuse(call, "-1")]
        met = f"if (!{call}) take({at}, place, {size}, {alignment});"
        return [
            "{",
            "    void *place = NULL;",
            f"    {met if operation == 'allocate' else _refuse(f'!{call}', '-1')}",
            "}",
        ]

    def resized(self, pointer: str, size: int) -> str:
        """A call that resizes."""
        part, sizes = self._choice.resized(size)
        return self.call(part, (pointer,), sizes)

    def _freed(self, pointer: str, block: int, size: int) -> str:
        part, sizes = self._choice.freed(block, size)
        return self.call(part, (pointer,), sizes or (size,))

    def _cycle(self, size: int, count: int, how: int) -> list[str]:
        if how == CROWDED:
            raise _NoFormError
        first = max(size // 2, 1) if how == RESIZED else size
        last = max(size // 8, 1) if how == SHRUNK else size
        lines = [f"unsigned char *at = {self.call('calloc' if how == ZEROED else 'malloc', (), (first,))};"]
        if how == ZEROED:
            lines += [f'for (size_t j = 0; at && j < {first}; j++) if (at[j]) wrong(-1, "it is not zero");']
        lines += ["if (!at) break;", f"memset(at, 90, {first});"]
        lines += [f"at = {self.resized('at', last)};"] if first != last else []
        if how == PAIRED:
            lines += [f"void *other = {self.call('malloc', (), (first,))};"]
        lines += [f"{self._freed(name, -1, last)};" for name in (("at", "other") if how == PAIRED else ("at",))]
        return [f"for (int i = 0; i < {count}; i++) {{", *(f"    {line}" for line in lines), "}"]


def _refuse(call: str, number: str) -> str:
    """The line of a request that must be refused."""
    return f'if ({call}) wrong({number}, "a request for more than there can be was met");'


_LINES: dict[str, Callable[[_Writer, str, int], list[str]]] = {
    "allocate": lambda item, at, size: [f"take({at}, {item.call('malloc', (), (size,))}, {size}, 0);"],
    "calloc": lambda item, at, size: [f"zeroed({at}, {item.call('calloc', (), (size,))}, {size});"],
    "check": lambda _, at, __: [f"look({at});"],
    "compare": lambda _, __, ___: [],
    "request_too_much": lambda item, _, size: [_refuse(item.call("malloc", (), (size,)), "-1")],
    "reset": lambda item, _, __: ["leave_all();", f"{item.call(RESET, (), ())};"],
    "resize": lambda item, at, size: [
        f"look({at});",
        f"change({at}, {item.resized(f'block[{at}].at', size)}, {size});",
    ],
    "resize_too_much": lambda item, at, size: [_refuse(item.resized(f"block[{at}].at", size), at), f"look({at});"],
    "use_all": lambda item, at, _: [
        f"look({at});",
        f"block[{at}].size = {item.call('malloc_usable_size', (f'block[{at}].at',), ())};",
        f"fill({at});",
    ],
}
"""The lines of each step that has a form in C; those of an aligned request, a free and a cycle are made elsewhere."""
