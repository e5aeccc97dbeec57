"""Programs of three other machines conform in their own words, and bugs that only these can have are refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from syncedmem.model import Call, Machine, Row
from syncedmem.spec.engine.supervisor import Limits
from syncedmem.spec.learning import LearnWanted, learn
from syncedmem.spec.ports.conformance import Claim, PortReport, conform_program
from syncedmem.spec.ports.protocol import PortError, protocol_of
from syncedmem.spec.ports.targets import OwnMachine, ProgramTarget

ROOT = Path(__file__).parents[3]
PORTS = ROOT / "examples" / "ports" / "json"
MACHINES = ROOT / "examples" / "machines"
LIMITS = Limits(seconds=60, first=60)
LEVELS = {"third_side": "L3", "write_only": "L2", "not_zeroed": "L2"}
"""The level that each port reaches."""


class Bug(NamedTuple):
    """A bug: in which port, what replaces which text of it, and a requirement that it breaks."""

    port: str
    changes: tuple[tuple[str, str], ...]
    requirement: str


BUGS = {
    "converts on the device": Bug(
        "third_side",
        (
            ('way = [side] if "cpu" in (source, side) or not source else', "way = [side] if side else"),
            (
                'f"{source}_to_{stop}" if source',
                '("" if "cpu" in (source, stop) else "copy_") + f"{source}_to_{stop}" if source',
            ),
        ),
        "R03-allocate-when-needed",
    ),
    "forgets the host on the way": Bug(
        "third_side", (("fresh = {*FRESH[self.head], *way}", "fresh = {*FRESH[self.head], side}"),), "R12-read-keeps"
    ),
    "copies before it overwrites": Bug(
        "write_only",
        (("port.allocate(it, side, mode)", "port.bring(it, side, mode, f'copy_to_{side}')"),),
        "R09-no-needless-copy",
    ),
    "overwriting makes nothing stale": Bug(
        "write_only", (('it["head"] = port.HEAD[side]', "pass"),), "R13-write-makes-stale"
    ),
    "zeroes after all": Bug(
        "not_zeroed",
        (("port.allocate(it, side, mode)", 'port.allocate(it, side, mode)\n    it["actions"].append("zero_gpu")'),),
        "R06-zero-only-first",
    ),
    "the host is not zeroed either": Bug("not_zeroed", (('or side == "cpu"', ""),), "R05-zeroed-first"),
}


def changed(bug: str, file: str) -> str:
    """Return the text of a file of the ports, with a bug if that is in it."""
    text = (PORTS / file).read_text(encoding="utf-8")
    for old, new in BUGS[bug].changes if file == f"{BUGS[bug].port}.py" else ():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def judged(name: str, folder: Path, policy: str = "") -> PortReport:
    """Return the verdict on a port in a folder, at the level that it reaches."""
    own = OwnMachine(f"{MACHINES / name}.py:{name.upper()}", policy)
    target = ProgramTarget(name, (sys.executable, "-S", str(folder / f"{name}.py")), own)
    level = LEVELS[name]
    return conform_program(target, Claim("safe" if level == "L3" else "caffe", level), LIMITS)


FIRST = ("converts on the device", "overwriting makes nothing stale", "zeroes after all")


@pytest.mark.parametrize("bug", [pytest.param(bug, marks=() if bug in FIRST else pytest.mark.deep) for bug in BUGS])
def test_a_bug_is_refused(bug: str, tmp_path: Path) -> None:
    name, _, requirement = BUGS[bug]
    for file in PORTS.glob("*.py"):
        (tmp_path / file.name).write_text(changed(bug, file.name), encoding="utf-8")
    report = judged(name, tmp_path)
    assert requirement in [violation.requirement for violation in report.violations]
    assert all(len(violation.statements) <= 12 for violation in report.violations)


@pytest.mark.deep
@pytest.mark.parametrize("name", LEVELS)
def test_the_right_ports_conform(name: str) -> None:
    policy = f"{MACHINES / name}.py:POLICY" if name == "third_side" else ""
    report = judged(name, PORTS, policy)
    assert report.passed, report.line
    assert f"/{LEVELS[name]} of the machine {name}" in report.line
    assert ("by its table alone" in report.line) == (not policy)


def test_after_a_hang_nothing_more_is_asked(tmp_path: Path) -> None:
    """Each suite and each level would wait again, and so would each attempt to shorten the program."""
    text = (PORTS / "third_side.py").read_text(encoding="utf-8")
    hanging = text.replace(
        '    elif op.endswith("_data"):',
        '    elif op == "gpu_data":\n        sys.stdin.read()\n    elif op.endswith("_data"):',
    )
    assert hanging != text
    (tmp_path / "third_side.py").write_text(hanging, encoding="utf-8")
    own = OwnMachine(f"{MACHINES / 'third_side'}.py:THIRD_SIDE")
    target = ProgramTarget("hangs", (sys.executable, "-S", str(tmp_path / "third_side.py")), own)
    report = conform_program(target, Claim("caffe"), replace(LIMITS, seconds=1))
    (violation,) = report.violations
    (level,) = report.results

    assert ("P01-answers", 3) == (violation.requirement, len(violation.statements))
    assert 1 == len(level.suites)
    assert "1 s" in violation.message


def test_a_port_is_learned_beside_its_own_machine(tmp_path: Path) -> None:
    pytest.importorskip("aalpy", reason="learning needs it")
    own = OwnMachine(f"{MACHINES / 'third_side'}.py:THIRD_SIDE")
    right = ProgramTarget("right", (sys.executable, "-S", str(PORTS / "third_side.py")), own)
    assert learn(right, LearnWanted("L1"), LIMITS).line.startswith("as declared: third_side/L1, 90 of 90 cells")
    (tmp_path / "third_side.py").write_text(changed("forgets the host on the way", "third_side.py"), encoding="utf-8")
    wrong = ProgramTarget("wrong", (sys.executable, "-S", str(tmp_path / "third_side.py")), own)
    report = learn(wrong, LearnWanted("L1"), LIMITS)
    assert {cell.partition(" ")[0] for cell in report.findings} == {"gpu_data", "prv_data"}


@pytest.mark.parametrize(
    ("machine", "policy", "sentence"),
    [
        ("third_side.py:THIRD_SIDE", "", "is of the machine caffe, not third_side"),
        ("third_side.py:NOTHING", "", "has no NOTHING"),
        ("third_side.py:THIRD_SIDE", "third_side.py:SIDES", "is no Policy"),
    ],
)
def test_what_cannot_be_judged_is_refused(machine: str, policy: str, sentence: str) -> None:
    own = OwnMachine(f"{MACHINES / machine}", policy and f"{MACHINES / policy}")
    target = ProgramTarget("port.py", (sys.executable, "-S", str(PORTS / "port.py")), own)
    with pytest.raises(PortError, match=sentence):
        conform_program(target, Claim("caffe"), LIMITS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"calls": [Call("state", "read", "a")], "sides": ("a",)}, "has a call state, and the protocol of ports has"),
        ({"calls": [Call("get", "read", "head")], "sides": ("head",)}, "has a side head, and"),
    ],
)
def test_a_word_of_the_protocol_is_no_word_of_a_machine(words: dict[str, Any], sentence: str) -> None:
    (call,) = words["calls"]
    machine = Machine("odd", [Row(call.name, "A", "A")], **words)
    with pytest.raises(PortError, match=sentence):
        protocol_of(machine)


SIDES = """
from syncedmem.model import Action, Call, Fact, Machine, Row
from syncedmem.spec import Policy

THERE = "has_device"
MACHINE = Machine(
    "lent",
    [
        Row("host_read", ["HOST", "BOTH"]),
        Row("host_read", "DEVICE", "BOTH", do="down"),
        Row("host_write", ["HOST", "BOTH"], "HOST"),
        Row("host_write", "DEVICE", "HOST", do="down"),
        Row("read", ["DEVICE", "BOTH"]),
        Row("read", "HOST", "BOTH", do=["alloc", "up"], unless=THERE),
        Row("read", "HOST", "BOTH", do="up", when=THERE),
        Row("write", ["DEVICE", "BOTH"], "DEVICE"),
        Row("write", "HOST", "DEVICE", do=["alloc", "up"], unless=THERE),
        Row("write", "HOST", "DEVICE", do="up", when=THERE),
        Row("delete", "HOST", unless=THERE),
        Row("delete", ["HOST", "BOTH"], "HOST", do="drop", when=THERE),
        Row("delete", "DEVICE", "HOST", do=["down", "drop"]),
    ],
    sides=["host", "device"],
    heads={"HOST": "host", "DEVICE": "device", "BOTH": ("host", "device")},
    calls=[
        Call("host_read", "read", "host"),
        Call("host_write", "write", "host"),
        Call("read", "read", "device"),
        Call("write", "write", "device"),
        Call("delete", DELETE),
    ],
    facts=[Fact(THERE, "pointer", "device")],
    actions=[
        Action("alloc", "allocate", "device", sets=THERE),
        Action("drop", "free", "device", clears=THERE),
        Action("up", "copy", side="device", source="host"),
        Action("down", "copy", side="host", source="device"),
    ],
)
POLICY = Policy(
    MACHINE.sides, lazy=frozenset(["device"]), born_fresh=frozenset(["host"]), home="host", evict_frees=FREES
)
"""
"""A machine whose `delete` frees the device side; what that call does, and whether the policy says so, is filled in."""

LENT_PORT = """
import json, sys

memories = {}

def call(it, op):
    acts, here, other = it["actions"], "device" if op in ("read", "write", "delete") else "host", None
    other = "host" if here == "device" else "device"
    if op == "delete":
        if it["head"] == "DEVICE":
            acts.append("down")
            it["host"] = it["device"]
        if it["device"] is not None:
            acts.append("drop")
        it["device"], it["head"] = None, "HOST"
        return {}
    if it[here] is None:
        acts.append("alloc")
    if it["head"] == other.upper():
        acts.append("up" if here == "device" else "down")
        it[here] = it[other]
    if op.endswith("write"):
        it["head"] = here.upper()
    elif it["head"] == other.upper():
        it["head"] = "BOTH"
    return {"view": it[here]}

def answer(op, memory=0, size=0, side="", **fields):
    if op == "hello":
        return {"version": 1, "name": "lent", "level": "L2", "edition": "lent"}
    if op == "synchronize":
        return {}
    shown = {}
    if op == "new":
        made = ["allocate_host", "zero_host"]
        memories[memory] = {"size": size, "head": "HOST", "host": "00" * size, "device": None, "actions": made}
    elif op == "write_view":
        memories[memory][side] = fields["bytes"]
    elif op != "state":
        memories[memory]["actions"] = []
        shown = call(memories[memory], op)
    return {**memories[memory], **shown}

for line in sys.stdin:
    request = json.loads(line)
    number = request.pop("id")
    print(json.dumps({"id": number, **answer(**request)}), flush=True)
"""


def lent(folder: Path, delete: str, *, frees: bool, policy: bool = True) -> PortReport:
    """Return the verdict on a port whose call `delete` means this, with a policy that says so or not."""
    text = SIDES.replace('Call("delete", DELETE)', f'Call("delete"{delete})').replace("FREES", str(frees))
    (folder / "lent.py").write_text(text, encoding="utf-8")
    (folder / "port.py").write_text(LENT_PORT, encoding="utf-8")
    own = OwnMachine(f"{folder / 'lent.py'}:MACHINE", f"{folder / 'lent.py'}:POLICY" if policy else "")
    target = ProgramTarget("lent", (sys.executable, "-S", str(folder / "port.py")), own)
    return conform_program(target, Claim("caffe", steps=20), LIMITS)


def test_a_call_that_means_nothing_is_taken_by_the_table_or_left_out_and_named(tmp_path: Path) -> None:
    by_table = lent(tmp_path, "", frees=False, policy=False)
    assert by_table.passed, by_table.line
    by_policy = lent(tmp_path, "", frees=False)
    assert by_policy.passed, by_policy.line
    assert by_policy.reached is not None
    assert "delete" in by_policy.reached.left


def test_a_policy_may_say_that_evicting_frees_and_an_unfit_one_is_refused(tmp_path: Path) -> None:
    report = lent(tmp_path, ', "evict", "device"', frees=True)
    assert report.passed, report.line
    assert report.reached is not None
    assert "delete" not in report.reached.left
    with pytest.raises(PortError, match=r"delete in .* the table says free device; the policy says nothing"):
        lent(tmp_path, ', "evict", "device"', frees=False)
