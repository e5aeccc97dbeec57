"""A trace that somebody wants to open with the page: read into walks, which are calls by name for the page to play.

There are reports of ``verify``, the programs in them, replays of ``fuzz``, vectors, and calls by name.  What the kit
does to check a memory, or as its caller, is no call of the machine and is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import EDITIONS
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.errors import FileFormatError
from syncedmem.model.files import parsed_json, read_text
from syncedmem.model.opening import machine_of
from syncedmem.model.states import stepper
from syncedmem.spec.fuzz.finding import OPERATIONS, TAKES, TargetError
from syncedmem.spec.fuzz.loops import items_from_json
from syncedmem.spec.vectors.programs import LOOK, WRITE_BUFFER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from syncedmem.model import Machine
    from syncedmem.model.stepper import Input

__all__ = ["MOST_STEPS", "TraceText", "armed_calls", "read_trace"]

Json = dict[str, Any]

MOST_STEPS = 10_000
"""The most steps that the page plays: programs of ``fuzz`` have up to 8192."""

_MOST_WALKS = 200
"""The most walks of one file that a page offers; there is a button for each."""

_KINDS = ("devices", "findings", "program", "steps", "header", "manifest")
"""What one of these is there for is a report, a replay, or a line of a file of vectors."""

_PROGRAM = re.compile(r"\.make\(|memory\w*\s*=|memory\w*\.")
_SETTING = re.compile(r"(set_\w+)\(\w+\.(\w+)\)")
_CALL = re.compile(r"(?:^|[\s=])(\w+)\.(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*$")
_ARMED = re.compile(r"moves\.armed\((\d+)")
_WANTED = "a report of verify, a replay of fuzz, a file of vectors, a program of the kit, or calls by name"


class TraceText(NamedTuple):
    """A text that holds a trace, and the name of where it is from, which errors say.

    Attributes
    ----------
    text, name : str
    """

    text: str
    name: str = "the trace"

    def machine(self) -> Machine:
        """The edition that it says it is about; else that of Caffe."""
        if self._is_json():
            for document in self._documents():
                for part in (*_parts(document, "devices"), document):
                    if str(part.get("edition")) in EDITIONS:
                        return EDITIONS[part["edition"]]
        return machine_of(DEFAULT)

    def walks(self, machine: Machine) -> list[Json]:
        """Everything in it that the page can play, each with a title and a note.

        A walk of the machine has ``calls``: pairs of a name and the number of the action that fails, or 0.  That of an
        allocator has a ``program``: pairs of an operation as it is written, and the blocks that are live after it.

        Raises
        ------
        FileFormatError
            If it is broken JSON or nothing that a trace could be; if it is about another machine; or if it has more
            steps than `MOST_STEPS`.
        """
        if self._is_json():
            found = [walk for document in self._documents() for walk in self._of_document(document, machine)]
        elif _PROGRAM.search(self.text):
            last = self.text.strip().splitlines()[-1]
            note = last.removeprefix("#").strip() if last.startswith("#") else ""
            found = [_walk("a program", note, self._of_program(self.text, machine))]
        else:
            found = [_walk("a list of calls", "", self._of_names(machine))]
        if not found:
            raise self._wrong("there is no trace in it")
        return found[:_MOST_WALKS]

    def _is_json(self) -> bool:
        return self.text.lstrip()[:1] in ("{", "[")

    def _wrong(self, reason: str) -> FileFormatError:
        return FileFormatError(self.name, reason)

    def _documents(self) -> list[Json]:
        """What JSON holds: a document, a list of them, or one a line."""
        found = self._parsed()
        if not found or not all(isinstance(it, dict) and any(kind in it for kind in _KINDS) for it in found):
            raise self._wrong(f"it is JSON, but not a trace; expected {_WANTED}")
        return found

    def _parsed(self) -> list[Any]:
        try:
            data: Any = parsed_json(self.name, self.text)
        except FileFormatError as error:
            try:
                return [parsed_json(self.name, line) for line in self.text.splitlines() if line.strip()]
            except FileFormatError:
                raise error from None
        return data if self.text.lstrip().startswith("[") else [data]

    def _of_document(self, document: Json, machine: Machine) -> Iterator[Json]:
        if "devices" in document:
            yield from self._of_report(document, machine)
        elif "findings" in document:
            for finding in _parts(document, "findings"):
                yield self._of_allocator({"target": document.get("target"), **finding})
        elif "program" in document:
            yield self._of_allocator(document)
        elif "steps" in document:
            yield self._of_vector(document, machine)

    def _of_report(self, document: Json, machine: Machine) -> Iterator[Json]:
        """The violations of a report of ``verify``."""
        devices = [it for it in _parts(document, "devices") if _is_a(dict, it.get("parts"))]
        parts = [(device, it) for device in devices for it in device["parts"].values() if _is_a(dict, it)]
        violations = [(device, it) for device, part in parts for it in _parts(part, "violations")]
        if not violations:
            raise self._wrong("the report has no violations: everything passed")
        for device, violation in violations:
            self._check_edition(device, machine)
            calls = self._of_program("\n".join(map(str, _list(violation, "statements"))), machine)
            title = f"{device.get('name', 'a device')} breaks {violation.get('requirement', 'a requirement')}"
            yield _walk(title, str(violation.get("message", "")), calls)

    def _of_vector(self, document: Json, machine: Machine) -> Json:
        if "shapes" in document:
            raise self._wrong("it is a vector of blobs, and the page plays memories")
        self._check_edition(document, machine)
        steps = _list(document, "steps")
        self._check_length(len(steps))
        named: list[Json] = [it if _is_a(dict, it) else {"call": str(it)} for it in steps]
        kept = [it for it in named if _is_asked(it)]
        left = len(steps) - len(kept)
        note = f"Steps that are not the machine's are left out: {left}." if left else ""
        armed = [(_name_of(it), _number(it.get("fail"))) for it in kept]
        if document.get("mode"):
            armed.insert(0, (f"set_mode({document['mode']})", 0))
        return _walk(
            f"vector {document.get('id', '')}".strip(), note, armed_calls(machine, self._known(machine, armed))
        )

    def _of_program(self, program: str, machine: Machine) -> list[tuple[str, int]]:
        """The calls of a program of the kit: those of the memory to which the last one is made."""
        lines = program.splitlines()
        self._check_length(sum(bool(line.strip()) for line in lines))
        entries = stepper(machine).inputs(end=True)
        made = [it for it in (_call_of(line, entries) for line in lines) if it]
        last = next((memory for memory, *_ in reversed(made) if memory), "")
        return armed_calls(machine, self._known(machine, [it[1:] for it in made if it[0] in ("", last)]))

    def _of_names(self, machine: Machine) -> list[tuple[str, int]]:
        known = {str(entry) for entry in stepper(machine).inputs(end=True)}
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        words = lines if known.issuperset(lines) else re.split(r"[\s,;]+", self.text.strip(" \t\r\n,;"))
        self._check_length(len(words))
        calls: list[tuple[str, int]] = []
        for word in words:
            name, _, fail = (word, "", "") if word in known else word.removesuffix("()").partition("!")
            if name not in known:
                raise self._wrong(f"{machine} has no call {name!r:.80}; expected {_WANTED}")
            calls.append((name, int(fail) if fail.isdecimal() else 0))
        return calls

    def _of_allocator(self, document: Json) -> Json:
        """The replay of a finding about an allocator."""
        about = document.get("property") or document.get("property_id") or "a property"
        try:
            steps = items_from_json(_list(document, "program"))
        except TargetError as error:
            raise self._wrong(str(error)) from error
        self._check_length(len(steps))
        live: dict[int, int] = {}
        told: list[tuple[str, str]] = []
        for name, *numbers in (step.as_json() for step in steps):
            given = dict(zip(OPERATIONS[name], numbers, strict=False))
            if name == "free":
                live.pop(given.get("block", -1), None)
            elif name in (*TAKES, "resize") and "size" in given:
                live[given["block"]] = given["size"]
            blocks = ", ".join(f"block {block} ({size:,} byte{'s' * (size != 1)})" for block, size in live.items())
            spelled = ", ".join(f"{word}={number}" for word, number in given.items())
            told.append((f"{name}({spelled})", f"live: {blocks or 'nothing'}"))
        title = f"{document.get('target') or 'an allocator'} breaks {about}"
        return {"title": title, "note": str(document.get("message", "")), "program": told}

    def _check_edition(self, document: Json, machine: Machine) -> None:
        name = document.get("edition") or machine.name
        if name != machine.name:
            raise self._wrong(f"it is about {name}, and the page is about {machine.name}")

    def _check_length(self, steps: int) -> None:
        if steps > MOST_STEPS:
            raise self._wrong(f"it has {steps:,} steps, and the page plays at most {MOST_STEPS:,}")

    def _known(self, machine: Machine, calls: list[tuple[str, int]]) -> list[tuple[str, int]]:
        known = {str(entry) for entry in stepper(machine).inputs(end=True)}
        for name, _ in calls:
            if name not in known:
                raise self._wrong(f"{machine} has no call {name!r:.80}; expected {_WANTED}")
        return calls


def read_trace(path: Path) -> TraceText:
    """The trace in a file, which is not looked at yet.

    Parameters
    ----------
    path : Path

    Raises
    ------
    FileAccessError
        If it cannot be read.
    FileFormatError
        If it is empty or no text, or longer than `syncedmem.model.files.MOST_TEXT`, of which no more is read.
    """
    return TraceText(read_text(path, _WANTED), str(path))


def armed_calls(machine: Machine, calls: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """From the number of the allocator call that fails, in each of some calls, to the number of the action."""
    takes = stepper(machine)
    entries = {str(entry): entry for entry in takes.inputs(end=True)}
    state, found = takes.start, list[tuple[str, int]]()
    ended = False
    for name, armed in calls:
        step = None if ended else takes.step(state, entries[name])
        actions = step.actions if step else ()
        moves = [k for k, action in enumerate(actions, 1) if machine.actions[action].does != "adopt"]
        fail = moves[armed - 1] if 0 < armed <= len(moves) else 0
        found.append((name, fail))
        if step and not fail:
            ended, state = entries[name].ends and not step.refusal, step.after
    return found


def _walk(title: str, note: str, calls: list[tuple[str, int]]) -> Json:
    return {"title": title, "note": note, "calls": calls}


def _is_asked(step: Mapping[str, Any]) -> bool:
    """Whether it is a call of the first memory: not what a caller writes, nor a look, nor its own pointer."""
    argument: Any = step.get("argument")
    own = _is_a(dict, argument) and bool(argument.get("own"))
    return step.get("call") not in (WRITE_BUFFER, LOOK) and not own and not step.get("memory")


def _name_of(step: Mapping[str, Any]) -> str:
    """The input of a step of a vector, by name."""
    name, argument = str(step.get("call")), step.get("argument", "")
    if name.startswith("set_") and isinstance(argument, str) and argument:
        return f"{name}({argument})"
    return name if argument is not None else f"{name}(NULL)"


def _call_of(line: str, entries: Iterable[Input]) -> tuple[str, str, int] | None:
    """The memory, the input and the allocator call that fails, of a line of a program; None if it is no call."""
    if setting := _SETTING.match(line):
        return "", f"{setting[1]}({setting[2]})", 0
    found = _CALL.search(line)
    if not found or line.startswith("#"):
        return None
    memory, method, argument = found.groups()
    for entry in entries:
        named = entry.call is not None and method == ("close" if entry.ends else entry.call.name)
        if named and entry.data == (argument != "None"):
            armed = _ARMED.search(line)
            return memory, str(entry), int(armed[1]) if armed else 0
    return None


def _parts(document: Json, kind: str) -> list[Json]:
    return [it for it in _list(document, kind) if _is_a(dict, it)]


def _list(document: Json, kind: str) -> list[Any]:
    found: list[Any] = document.get(kind, [])
    return found if _is_a(list, found) else []


def _is_a(kind: type, data: object) -> bool:
    return isinstance(data, kind)


def _number(data: object) -> int:
    return data if isinstance(data, int) else 0
