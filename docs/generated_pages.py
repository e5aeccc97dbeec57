"""Writes the pages and parts of pages in docs/ that are generated: ``python docs/generated_pages.py [--check]``.

Such a part is between ``<!-- made: NAME -->`` and ``<!-- end -->`` in a page that is otherwise written by hand.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
import sys
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parents[1] / "tests"))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from bugs_in_c import IN_C
from mutants.allocator import ALLOCATOR_BUGS
from mutants.blob import BLOB_BUGS
from mutants.device_allocator import DEVICE_ALLOCATOR_BUGS
from mutants.memory import MEMORY_BUGS
from mutants.port import PORT_BUGS
from port_bugs import PORT_BUGS as PORT_BUGS_IN_CPP

from syncedmem.model import ACTION_MEANINGS, CALL_MEANINGS, EDITIONS, FACT_MEANINGS, caffe
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.difference import compare
from syncedmem.model.exports.mermaid import mermaid
from syncedmem.model.exports.tables import markdown_table
from syncedmem.spec import Policy
from syncedmem.spec.blob.calls import CALLS
from syncedmem.spec.memory.coverage import transitions_of
from syncedmem.spec.ports.protocol import BLOB
from syncedmem.spec.ports.protocol import CAFFE as PORTS
from syncedmem.spec.ports.protocol import LEVELS as PORT_LEVELS
from syncedmem.spec.requirements import LEVELS, PROFILES, requirements_of
from syncedmem.spec.vectors import REFUSALS, SUITES, vectors
from syncedmem.spec.vectors.keys import LINE, MEMORY_STEP, RECORDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mutants.registry import SeededBug

    from syncedmem.model import Machine
    from syncedmem.spec.engine.fields import Field
    from syncedmem.spec.requirements import Kind, Profile

__all__ = [
    "PAGES",
    "PARTS",
    "blob_calls",
    "filled",
    "main",
    "requirements_page",
    "stale",
    "wanted",
]

_SEEDED_BUGS: dict[str, SeededBug] = {
    **ALLOCATOR_BUGS,
    **BLOB_BUGS,
    **DEVICE_ALLOCATOR_BUGS,
    **MEMORY_BUGS,
    **PORT_BUGS,
}
HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors"
NOTE = "Made by `make generated` from `{}`; not written by hand."
SECTIONS: dict[tuple[Kind, Profile], str] = {
    ("memory", "caffe"): "What Caffe does: memories",
    ("memory", "safe"): "What is promised beyond Caffe: memories",
    ("blob", "caffe"): "What Caffe does: blobs",
    ("blob", "safe"): "What is promised beyond Caffe: blobs",
    ("allocator", "safe"): "What an allocator must do",
    ("device allocator", "safe"): "What an allocator with our interface must do",
    ("port", "caffe"): "What a port that is a program must do",
}


def requirements_page() -> str:
    """The page of requirements, with the seeded bugs that break them and that the kit refuses."""
    parts = [
        "# Requirements",
        NOTE.format("spec/requirements"),
        (
            "Each requirement is one sentence that can be wrong. Every verdict of [the kit](conformance.md), of "
            "[the fuzzer](fuzzing.md), of `syncedmem verify` and of [the contract](allocators.md#test-your-own) names "
            "one. For each there are one or more *seeded bugs*: a memory, a blob, an allocator or a port "
            "that breaks the requirement. A test shows that it is refused, and that the requirement is named "
            "([memories and blobs](../tests/spec/test_seeded_bugs.py), "
            "[allocators](../tests/spec/fuzz/test_fuzz_seeded_bugs.py), [allocators with our "
            "interface](../tests/runtime/allocators/test_contract.py), "
            "[ports](../tests/spec/ports/test_wrong_ports.py)). R are requirements of memories, B of blobs, A "
            "of any allocator, D of one with our interface, P of a port that is a program. Sources of R and B are "
            "[Caffe's files by name and line](design.md#how-sources-are-cited), and its issues. H1 to H20 are hazards "
            "of Caffe, which [the errata](errata.md) explain."
        ),
        (
            "Levels say how much of a memory or a blob is observed, and each includes the lower ones: L0 heads, flags "
            "and refusals; L1 bytes; L2 actions, in order; L3 failures of actions; L4 streams, threads and lifetimes. "
            "A requirement is judged from its level on."
        ),
    ]
    for (kind, profile), title in SECTIONS.items():
        levels = kind in ("memory", "blob", "port")
        rows = [
            (
                f"{_place(name)}**{name}**",
                item.text,
                *((item.level,) if levels else ()),
                item.source,
                "<br>".join(map(_linked, (bug for bug in _SEEDED_BUGS.values() if bug.requirement == name))),
            )
            for name, item in requirements_of(kind).items()
            if item.profile == profile
        ]
        heads = ("requirement", "says", *(("level",) if levels else ()), "source", "tested with")
        parts += [f"## {title}", table(heads, rows)]
    return "\n\n".join((*parts, *_reach())) + "\n"


def _reach() -> Iterator[str]:
    """What each profile judges at each level, and the bugs that it cannot show."""
    yield "## What each profile judges"
    yield (
        "A subject is judged by the requirements of its profile, up to its level, and by no others. A Python maker is "
        "seen at L4. There every seeded bug that breaks a requirement of the profile is killed at the default number "
        "of steps, but for those in the second table. [A test](../tests/spec/test_seeded_bugs.py) runs some of them "
        "each time, and `make deep PART=seeded-bugs` all of them."
    )
    known = requirements_of("memory", "blob").values()
    bugs = [*MEMORY_BUGS.values(), *BLOB_BUGS.values()]
    rows: list[tuple[str, ...]] = []
    for profile, level in product(PROFILES, LEVELS):
        judged = {item.id for item in known if item.level <= level and (profile == "safe" or item.profile == "caffe")}
        breaking = sum(bug.requirement in judged and not (profile == "caffe" and bug.out_of_reach) for bug in bugs)
        rows.append((f"`{profile}`", level, str(len(judged)), str(breaking)))
    yield table(("profile", "level", "requirements", "seeded bugs that break them"), rows)
    yield "These bugs break a requirement of Caffe's, and the profile `caffe` cannot show them:"
    out = [(_linked(bug), bug.requirement, bug.text, bug.out_of_reach) for bug in bugs if bug.out_of_reach]
    yield table(("seeded bug", "requirement", "what is wrong", "why it is out of reach"), out)


def blob_calls() -> str:
    """What a blob must have so that its kit can test it; the table of docs/conformance.md."""
    asked = {
        "always": "always",
        "safe": "with the profile `safe`",
        "device": "with a device",
        "messages": "if there is `to_proto`",
    }
    rows = [(call.spelt(), call.result, asked[call.asked]) for call in CALLS]
    return table(("member of a blob", "what it is or does", "when it is needed"), rows)


def meaning_table() -> str:
    """What the words of a machine can mean; the table of docs/document-it.md."""
    kinds = {"Call.does": CALL_MEANINGS, "Action.does": ACTION_MEANINGS, "Fact.means": FACT_MEANINGS}
    rows = [(f"`{kind}`", f'`"{name}"`', text) for kind, known in kinds.items() for name, text in known.items()]
    return table(("of", "can be", "which means"), rows)


def policy_table() -> str:
    """The fields of a policy, out of its docstring; the table of docs/conformance.md."""
    _, _, told = str(inspect.getdoc(Policy)).partition("Attributes\n----------\n")
    found = re.findall(r"^(\w+) : (.+)\n((?: {4}.+\n)+)", told.partition("\nRaises\n")[0], flags=re.MULTILINE)
    rows = [(f"`{name}`", f"`{kind}`", " ".join(text.replace("``", "`").split())) for name, kind, text in found]
    return table(("field of a `Policy`", "type", "what it decides"), rows)


def _place(name: str) -> str:
    """An anchor in a page: ``requirements.md#r10-same-bytes``."""
    return f'<a id="{name.lower()}"></a>'


def _linked(bug: SeededBug) -> str:
    """A name as a link to the code that defines it."""
    return f"[{bug.name}](../tests/{bug.make.__module__.replace('.', '/')}.py)"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def suite_table() -> str:
    """The table of the suites of test vectors, with their sizes."""
    rows: list[tuple[str, ...]] = []
    for name, suite in SUITES.items():
        found = [[vector.program for vector in vectors(name, machine)] for machine in EDITIONS.values()]
        profiles = sorted({program.profile for programs in found for program in programs})
        sizes = (f"{len(item):,} / {sum(len(program.operations) for program in item):,}" for item in found)
        rows.append((f"`{name}`", suite.text, " and ".join(profiles), *sizes))
    return table(("suite", "what it guarantees", "profile", *EDITIONS), rows)


def refusal_table() -> str:
    """The table of reasons for which a step can be refused."""
    rows = [(f"`{name}`" if name else "`null`", why) for name, why in REFUSALS.items()]
    return table(("`refusal`", "meaning"), rows)


def key_table(keys: Iterable[Field]) -> str:
    """The table of the keys of a vector or of a step."""
    rows = [(f"`{key.name}`", "does" if key.role == "does" else "must see", key.text) for key in keys]
    return table(("key", "", "meaning"), rows)


def committed_sentence() -> str:
    """The sentence that names the vectors in the repository."""
    kept = sorted(path.relative_to(VECTORS).with_suffix("").as_posix() for path in VECTORS.rglob("*.jsonl"))
    names = [f"`{name}`" for name in kept]
    return (
        "`vectors/` in the repository has the schema, and "
        f"{len(names)} small suites for reading: {', '.join(names[:-1])} and {names[-1]}."
    )


def protocol_levels() -> str:
    """The levels of the protocol of ports."""
    return table(("level", "what a port shows"), PORT_LEVELS.items())


def protocol_requests() -> str:
    """The requests of the protocol of ports."""
    rows = [
        (
            f"`{op}`",
            message.text,
            "<br>".join(map(_field, (field for field in message.fields if field.level < "L3"))),
            message.answer,
        )
        for op, message in PORTS.requests.items()
    ]
    return table(("`op`", "what the port does", "fields", "answer"), rows)


def protocol_answers() -> str:
    """The fields of each kind of answer of the protocol of ports."""
    kinds = {
        "state": PORTS.state,
        **{
            kind: tuple(field for field in fields if field not in PORTS.state) for kind, fields in PORTS.answers.items()
        },
    }
    kinds["state"] = PORTS.state
    kinds["blob"] = tuple(item for item in kinds["blob"] if item not in BLOB)
    rows = [(kind, *_cells(field)) for kind, fields in kinds.items() for field in fields if field.name != "refused"]
    return table(("answer", "field", "from level", "needed", "meaning"), rows)


def protocol_actions() -> str:
    """The fields of an action of the protocol of ports."""
    return table(("field", "from level", "needed", "meaning"), [_cells(item) for item in PORTS.action])


_DOES = {
    "allocate": "allocates the {side} side",
    "zero": "fills the {side} side with zeros",
    "adopt": "takes a buffer of the caller as the {side} side; a port need not say it",
    "free": "frees the {side} side",
    "wait": "waits for pushes: for those of its `stream`, or for all",
}
"""What an action does that is no copy, by the word of the protocol."""


def protocol_action_names() -> str:
    """The names of the actions that a port of Caffe's machine may say, and which of them its table has."""
    rows: list[tuple[str, str, str]] = []
    for name, meaning in PORTS.actions.items():
        queues = "queues a copy" if meaning.queued else "copies"
        way = f"{queues} from {meaning.source} to {meaning.side}" if meaning.does == "copy" else ""
        if way and meaning.source == meaning.side:
            way = f"copies within the {meaning.side} side"
        mine = "yes" if name in caffe.CAFFE.actions else ""
        rows.append((f"`{name}`", way or _DOES[meaning.does].format(side=meaning.side), mine))
    return table(("name", "what is done", "in the table"), rows)


def _field(field: Field) -> str:
    return f"`{field.name}`: {field.text}" + ("" if field.required else ", if there is this field")


def _cells(field: Field) -> tuple[str, str, str, str]:
    return f"`{field.name}`", field.level, "yes" if field.required else "", field.text


def protocol_schema() -> str:
    """The JSON Schema of a line of the protocol of ports."""
    return json.dumps(PORTS.schema(), indent=2) + "\n"


def trust() -> str:
    """Why to believe the project: what is checked, in numbers."""
    kinds: tuple[Kind, ...] = ("memory", "blob", "allocator", "device allocator", "port")
    required = sum(len(requirements_of(kind)) for kind in kinds)
    transitions = len(transitions_of(caffe.CAFFE))
    lines = (
        "Caffe's own `syncedmem.cpp` and `blob.cpp`, unmodified, pass the same kit in every run of the CI:",
        f"all {transitions} transitions.",
        f"\n- {required} numbered requirements say what is right, each with its source.",
        f"{len(_SEEDED_BUGS)} *seeded bugs*, which are implementations that are wrong on purpose, test the tests:",
        f"each is found, or listed with the reason. So are {len(PORT_BUGS_IN_CPP)} more in the C++ port.",
        "\n- SPIN and TLA+ check the invariants, each on its own export of the model.",
        "\n- The fuzzer has run on allocators of glibc, jemalloc, mimalloc, tcmalloc, UMF, RMM, PyOpenCL and",
        f"cuda.core, and finds each of {len(ALLOCATOR_BUGS) + len(IN_C)} seeded bugs of allocators.",
    )
    return f"- {' '.join(lines)}".replace(" \n", "\n")


def machine_page() -> str:
    """The head machine: its diagram, its tables, and the matrices of all editions."""
    parts = [
        f"# The head machine, edition {caffe.CAFFE}\n",
        "Made from the declaration by `make generated`; not written by hand.\n",
        f"```mermaid\n{mermaid()}```\n",
        "## Heads and calls\n",
        markdown_table(),
        "## Configurations and calls\n",
        "A configuration is a head and, for host and device: `-` no pointer, `o` an owned one, `e` an external one.\n",
        markdown_table(detail=Detail.CONFIGURATIONS),
    ]
    for other in EDITIONS.values():
        if other is not caffe.CAFFE:
            parts += [f"## Configurations and calls, edition {other}\n"]
            parts += [markdown_table(other, detail=Detail.CONFIGURATIONS)]
    return "\n".join(parts)


def machines_page() -> str:
    """The examples of machines beside Caffe's, each drawn and compared."""
    parts = [
        "# Machines of others",
        NOTE.format("examples/machines"),
        (
            "Others keep two copies of one buffer too, or more of them, and have rules of their own. Each of these "
            "files says the rules of one in its own words, in 20 to 75 lines. `syncedmem diagram --edition "
            "FILE.py:NAME` draws it, and `syncedmem diff caffe FILE.py:NAME` says where it differs from Caffe. A cell "
            "is a call in a state to which the same calls lead in both."
        ),
    ]
    rows: list[tuple[str, ...]] = []
    described: list[str] = []
    for file, machine in example_machines():
        found = compare(caffe.CAFFE, machine)
        link = f"[{file.name}](../examples/machines/{file.name})"
        here = ", ".join(f"`{item}`" for item in found.calls[1]) or "none"
        cells = f"{len(found.cells)} of {found.compared}" if found.compared else "no call is shared"
        anchor = re.sub(r"[^\w -]", "", machine.title.lower()).replace(" ", "-")
        rows.append((f"[{machine.title}](#{anchor})", str(len(machine.heads)), str(len(machine.calls)), here, cells))
        described += [f"## {machine.title}", _essay(file), f"{link}:"]
        described += [f"![{machine.title}](pictures/{file.stem}.svg)"]
        if found.cells:
            lines = [
                (f"`{cell.call}`", " / ".join(f"`{head}`" for head in dict.fromkeys(cell.heads)), *cell.does)
                for cell in found.cells[:_MOST_CELLS]
            ]
            more = len(found.cells) - len(lines)
            described.append(table(("call", "in", "Caffe", machine.title), lines))
            described += [f"And {more} more."] if more else []
        elif found.compared:
            described.append("What both have is the same.")
    heads = ("machine", "heads", "calls", "calls that Caffe does not have", "cells that differ from Caffe")
    return "\n\n".join([*parts, table(heads, rows), *described]) + "\n"


_MOST_CELLS = 6


def _essay(file: Path) -> str:
    """The docstring of an example, as a paragraph."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.replace("``", "`")


def machine_pictures() -> dict[str, Callable[[], str]]:
    """The pictures on that page."""
    return {f"pictures/{file.stem}.svg": partial(diagram_svg, machine) for file, machine in example_machines()}


@cache
def example_machines() -> tuple[tuple[Path, Machine], ...]:
    """The files of examples/machines, each with its machine, which has its name in capitals."""
    files = sorted((HERE.parent / "examples" / "machines").glob("*.py"))
    return tuple((file, runpy.run_path(str(file))[file.stem.upper()]) for file in files)


PAGES = {
    "requirements.md": requirements_page,
    "port-protocol.schema.json": protocol_schema,
    "machine.md": machine_page,
    "machines.md": machines_page,
    **machine_pictures(),
}
PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "../README.md": {"trust": trust},
    "index.md": {"trust": trust},
    "conformance.md": {"policy": policy_table, "calls": blob_calls},
    "document-it.md": {"meanings": meaning_table},
    "port-protocol.md": {
        "levels": protocol_levels,
        "requests": protocol_requests,
        "answers": protocol_answers,
        "actions": protocol_actions,
        "names": protocol_action_names,
    },
    "vectors.md": {
        "suites": suite_table,
        "line": lambda: table(("key", "meaning"), [(f"`{item.name}`", item.text) for item in LINE]),
        "step": lambda: key_table(MEMORY_STEP),
        "refusals": refusal_table,
        "recorded": lambda: table(("key", "meaning"), [(f"`{item.name}`", item.text) for item in RECORDED]),
        "committed": committed_sentence,
    },
}


def filled(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """A page with new text in its generated parts.

    Raises
    ------
    ValueError
        If the page does not have exactly these parts.
    """
    found = re.split(r"(<!-- made: (\w+) -->\n\n).*?(\n\n<!-- end -->)", text, flags=re.DOTALL)
    if sorted(found[2::4]) != sorted(parts):
        raise ValueError(f"parts {', '.join(parts)} are needed, and the page has {', '.join(found[2::4]) or 'none'}")
    pieces = zip(found[::4], [*found[1::4], ""], [*found[2::4], ""], [*found[3::4], ""], strict=True)
    return "".join(f"{before}{start}{parts[name]() if name else ''}{end}" for before, start, name, end in pieces)


def wanted(folder: Path) -> dict[str, str]:
    """Every page that is generated, in whole or in part, with its right text."""
    parts = {name: filled((folder / name).read_text(encoding="utf-8"), made) for name, made in PARTS.items()}
    return {**{name: text() for name, text in PAGES.items()}, **parts}


def stale(folder: Path) -> list[str]:
    """The pages of a folder that are not up to date."""
    return [
        name
        for name, text in wanted(folder).items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str], folder: Path = HERE) -> int:
    """Write the pages; with ``--check``, name those that would change."""
    outdated, made = stale(folder), wanted(folder)
    for name in outdated:
        if "--check" in arguments:
            sys.stderr.write(f"{folder / name} is not up to date: make generated\n")
        else:
            (folder / name).write_text(made[name], encoding="utf-8")
    return int("--check" in arguments and bool(outdated))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
