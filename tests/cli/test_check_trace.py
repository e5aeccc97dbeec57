"""The commands ``check-trace`` and ``replay`` with vectors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_fixtures import run
from hypothesis import given, settings
from hypothesis import strategies as st

from syncedmem.model import EDITIONS, FileFormatError
from syncedmem.spec.vectors import SUITES, vectors
from syncedmem.spec.vectors.reading import holds_vectors
from syncedmem.spec.vectors.traces import Stop, check_trace, checked_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Refuse = Callable[..., str]

ROOT = Path(__file__).parents[2]


def stop_of(*lines: dict[str, Any], edition: str = "caffe") -> Stop | int:
    return checked_lines([*enumerate(lines, 1)], edition)


# --- runs of the machine


@pytest.mark.parametrize("suite", [name for name in SUITES if name != "hsi-extra"])
@pytest.mark.parametrize("edition", EDITIONS)
def test_every_vector_is_a_run_of_its_machine(edition: str, suite: str) -> None:
    found = [json.loads(vector.line()) for vector in vectors(suite, edition)][:150]
    assert len(found) == stop_of(*found)


RUN: Sequence[dict[str, Any]] = (
    {"edition": "caffe", "size": 2},
    {"call": "set_mode", "argument": "CPU"},
    {"call": "mutable_cpu_data", "actions": ["allocate_cpu", "zero_cpu"], "write": "0102"},
    {"call": "gpu_data", "actions": ["allocate_gpu", "copy_to_gpu"], "shows": "0102", "head": "SYNCED"},
    {"call": "set_gpu_data", "argument": None, "refused": True},
    {"call": "cpu_data", "mode": "GPU", "shows": "0102", "flags": {"own_gpu_data": True}, "bytes": {"cpu": "0102"}},
    {"call": "gpu_data", "failed": True},
    {"call": "release", "actions": ["free_cpu", "free_gpu"]},
)


def test_a_recorded_run_is_one_of_the_machines() -> None:
    assert stop_of(*RUN) == len(RUN)


@pytest.mark.parametrize(
    ("line", "change", "said"),
    [
        (3, {"actions": ["allocate_cpu"]}, "line 3: seen mutable_cpu_data, actions ['allocate_cpu'], expected "),
        (3, {"actions": []}, "expected mutable_cpu_data: allocate_cpu, zero_cpu, then HEAD_AT_CPU"),
        (4, {"shows": "0103"}, "line 4: seen gpu_data"),
        (4, {"head": "HEAD_AT_GPU"}, "expected gpu_data: allocate_gpu, copy_to_gpu, then SYNCED"),
        (5, {"refused": None}, "expected set_gpu_data: the refusal null_data, then SYNCED"),
        (6, {"flags": {"own_gpu_data": False}}, "expected cpu_data: no action, then SYNCED"),
        (6, {"bytes": {"cpu": "0000"}}, "line 6"),
        (8, {"actions": ["free_gpu", "free_cpu"]}, "expected release: free_cpu, free_gpu, then the end"),
    ],
)  # fmt: skip
def test_it_is_said_where_a_run_stops_being_one(line: int, change: dict[str, Any], said: str) -> None:
    lines = [dict(line) for line in RUN]
    lines[line - 1].update(change)
    found = stop_of(*lines)
    assert isinstance(found, Stop)
    assert found.line == line
    assert said in str(found)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"call": "cpu_dat"}, "there is no call 'cpu_dat'; did you mean cpu_data?"),
        ({"call": "cpu_data", "head": "SYNCD"}, "there is no head 'SYNCD'; did you mean SYNCED?"),
        ({"call": "cpu_data", "actions": ["zero_cp"]}, "there is no action 'zero_cp'; did you mean zero_cpu?"),
        ({"call": "set_cpu_data", "refusal": "nul_data"}, "there is no refusal 'nul_data'; did you mean null_data?"),
    ],
)
def test_a_misspelt_word_is_no_difference(line: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        stop_of(line)


def test_the_bytes_that_are_due_are_said() -> None:
    old, new = {"call": "mutable_cpu_data", "write": "01020304"}, {"call": "mutable_gpu_data", "write": "05060708"}
    shown = stop_of({"size": 4}, old, new, {"call": "cpu_data", "shows": "01020304"})
    held = stop_of({"size": 4}, old, new, {"call": "cpu_data", "bytes": {"gpu": 3}})
    assert str(shown).endswith("expected cpu_data: copy_to_cpu, then SYNCED, which shows 05060708")
    assert str(held).endswith("then SYNCED, and the gpu side holds 05060708")


def test_when_and_where_a_call_was_made_may_be_recorded() -> None:
    assert 2 == stop_of({"edition": "caffe", "time": "noon"}, {"call": "cpu_data", "time": 1.5, "thread": 7})


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(["call", "memory", "argument", "actions", "head", "flags", "bytes", "shows", "refused", "mode",
                         "refusal", "write", "fail", "failed", "steps", "size", "sizes", "edition"]),
        st.recursive(st.none() | st.booleans() | st.integers() | st.sampled_from(["gpu_data", "set_mode", "00", "GPU"]),
                     lambda part: st.lists(part, max_size=2)
                     | st.dictionaries(st.sampled_from(["cpu", "own_cpu_data", "buffer", "call"]), part, max_size=2),
                     max_leaves=4),
    )
)  # fmt: skip
def test_whatever_a_line_has_the_answer_is_a_verdict_or_says_the_line(line: dict[str, Any]) -> None:
    verdict: object
    try:
        verdict = stop_of({"size": 2}, line)
    except ValueError as error:
        verdict = str(error)
    assert verdict == 2 or isinstance(verdict, Stop) or "line 2: " in str(verdict)


PUSHED: Sequence[dict[str, Any]] = (
    {"size": 2},
    {"call": "mutable_cpu_data", "write": "0102"},
    {"call": "async_gpu_push", "bytes": {"gpu": "0000"}},
    {"call": "cpu_data", "bytes": {"gpu": "0000", "cpu": "0102"}},
)
"""A run of a memory that pushes when somebody waits."""


def test_a_queued_copy_may_happen_later() -> None:
    shown = {"call": "gpu_data", "shows": "0102", "bytes": {"gpu": "0102"}}
    assert stop_of(*PUSHED, shown) == 5


@pytest.mark.parametrize("late", [{"shows": "0000"}, {"bytes": {"gpu": "0000"}}])
def test_a_queued_copy_has_happened_when_its_side_is_shown(late: dict[str, Any]) -> None:
    found = stop_of(*PUSHED, {"call": "gpu_data", **late})
    assert isinstance(found, Stop)
    assert found.line == 5


def test_null_was_not_recorded() -> None:
    unknown = {"head": None, "actions": None, "flags": None, "bytes": None, "shows": None, "memory": None}
    assert stop_of({"size": None, "mode": None}, {"call": "mutable_gpu_data", **unknown}) == 2


@pytest.mark.parametrize("why", [True, "check failed: data"])
def test_a_refusal_may_be_said_in_any_words(why: object) -> None:
    assert stop_of({"call": "set_gpu_data", "argument": None, "refused": why}) == 1
    assert isinstance(stop_of({"call": "gpu_data", "refused": why}), Stop)


def test_actions_alone_are_enough() -> None:
    """Which calls they were is found out; a copy down cannot come before anything is on the device."""
    good = [["allocate_gpu", "zero_gpu"], ["allocate_cpu", "copy_to_cpu"], [], ["free_cpu", "free_gpu"]]
    assert stop_of(*({"actions": line} for line in good)) == len(good)
    bad = stop_of({"actions": ["allocate_cpu", "zero_cpu"]}, {"actions": ["copy_to_cpu"]})
    assert isinstance(bad, Stop)
    assert str(bad).startswith("line 2: seen actions alone, actions ['copy_to_cpu'], expected cpu_data: no action, ")
    assert " more" in str(bad)


def test_nothing_follows_the_end() -> None:
    found = stop_of({"call": "release"}, {"call": "cpu_data"})
    assert str(found) == "line 2: seen cpu_data, expected nothing"


def test_contents_may_be_numbers_and_unknown() -> None:
    written = {"call": "mutable_cpu_data", "write": 3}
    assert stop_of({"size": 4}, written, {"call": "gpu_data", "shows": 3}) == 3
    assert isinstance(stop_of({"size": 4}, written, {"call": "gpu_data", "shows": 4}), Stop)
    assert stop_of(written, {"call": "gpu_data", "shows": 4}) == 2  # the size is not known
    unknown = ({"call": "mutable_cpu_data"}, {"call": "cpu_data", "shows": "0102"})
    assert stop_of(*unknown, {"call": "gpu_data", "shows": "0102"}) == 3
    assert isinstance(stop_of(*unknown, {"call": "gpu_data", "shows": "0103"}), Stop)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense\n", "this is broken JSON"),
        ("[]\n", "it is no JSON object; wanted is a recorded run"),
        ('{"call":"cpu_data"}\n{"call":"fly"}\n', "it is no recorded run: line 2: there is no call 'fly'; known are "),
        ('{"call":"cpu_data","heads":"SYNCED"}\n', "line 1: there is no key 'heads'; known are "),
        ('{"call":"cpu_data","bytes":{"host":0}}\n', "line 1: there is no key 'host'; known are cpu, gpu"),
        ('{"call":"cpu_data","flags":{"own":true}}\n', "line 1: there is no key 'own'; known are "),
        ('{"edition":"caffe","sizs":[4]}\n', "line 1: there is no key 'sizs'; known are "),
        ('{"call":"cpu_data"}\n{"call":"cpu_data","memory":[1]}\n', r"line 2: .*'memory': \[1\]"),
        ('{"call":"set_cpu_data","bytes":"0a0b"}\n', "line 1: .*'bytes': '0a0b'"),
        ('{"call":"cpu_data","flags":["own_cpu_data"]}\n', r"line 1: .*'flags': \['own_cpu_data'\]"),
        ('{"call":"cpu_data","refused":3}\n', "line 1: .*'refused': 3"),
        ('{"call":"set_cpu_data","argument":{"buffer":[]}}\n', "line 1: .*'argument': "),
        ('{"call":"set_mode"}\n', "line 1: set_mode has no value"),
        ('{"edition":"none"}\n', "there is no machine 'none'"),
        ('{"size":2147483648}\n{"call":"cpu_data"}\n', "line 1: .*2147483648 is more than 67,108,864"),
        ('{"size":"4"}\n', "'4' is not of type integer"),
        ('{"call":"cpu_data","shows":"zz"}\n', "it is no recorded run"),
    ],
)
def test_what_is_no_recorded_run_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=said):
        check_trace(tmp_path / "log.jsonl")


def test_the_command_says_where_a_run_stops(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n\n" for line in RUN), encoding="utf-8")
    result = run("check-trace", str(log))
    assert (0, f"{log} is a run of caffe: 15 lines\n") == (result.exit_code, result.output)
    log.write_text('{"call":"gpu_data","head":"SYNCED"}\n', encoding="utf-8")
    result = run("check-trace", str(log))
    assert result.exit_code == 1
    assert "is not a run of caffe from line 1: seen gpu_data, head SYNCED, expected " in result.output


@pytest.mark.parametrize("theirs", ["x" * 100_000, "a\nb", "a\x07\u202eb"], ids=["long", "lines", "control"])
def test_words_of_a_file_are_one_line_of_printable_text(theirs: str, tmp_path: Path, refused: Refuse) -> None:
    log = tmp_path / "log"
    for line in ({"head": theirs}, {"actions": [theirs]}, {"refusal": theirs}, {"bytes": {theirs: 0}}, {theirs: 1}):
        log.write_text(json.dumps({"call": "cpu_data", **line}), encoding="utf-8")
        text = refused("check-trace", log)
        assert (1, True) == (text.count("\n"), text.rstrip("\n").isprintable())
        assert len(text) < 3_000


def test_an_edition_that_there_is_not_is_refused(refused: Refuse) -> None:
    assert "there are caffe, early, cpu_only" in refused("check-trace", "log", "--edition", "later")


# --- replay takes vectors


def test_our_memory_passes_committed_vectors() -> None:
    result = run("replay", str(ROOT / "vectors" / "caffe" / "aliases.jsonl"))
    assert (0, "160 vectors, 0 failed\n") == (result.exit_code, result.output)


def test_vectors_run_on_a_target() -> None:
    target = f"{ROOT}/examples/wrong_memory.py:CopiesUpOnlyOnce"
    result = run("replay", str(ROOT / "vectors" / "caffe" / "modes.jsonl"), target)
    *lines, last = result.output.splitlines()
    assert (1, "36 vectors, 4 failed") == (result.exit_code, last)
    assert lines[0].endswith(": step 5, gpu_data: R08-copy-up: saw nothing, expected copy gpu")


def test_vectors_of_no_device_run_too(tmp_path: Path) -> None:
    lines = [next(iter(vectors("tour", edition))).line() for edition in ("caffe", "cpu_only")]
    (tmp_path / "some.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = run("replay", str(tmp_path / "some.jsonl"))
    assert (0, "2 vectors, 0 failed\n") == (result.exit_code, result.output)


GOOD: dict[str, Any] = json.loads((ROOT / "vectors" / "cpu_only" / "tour.jsonl").read_text("utf-8").splitlines()[0])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"format": 1}, "line 1: it is no vector: its format is 1, not 3"),
    ({"id": None}, "it has no 'id'"),
    ({"more": 1}, "it has 'more', which is none of its fields"),
    ({"sizes": []}, "it has a wrong 'sizes': [] is too short"),
    ({"sizes": [1 << 31]}, "it has a wrong 'sizes': [2147483648] where 2147483648 is more than 67,108,864"),
    ({"sizes": [1 << 25] * 3}, "is 100,663,296 bytes in all, and at most 67,108,864 are taken"),
    ({"sizes": [0] * 1025}, "has 1,025 items, and at most 1,024 are read"),
    ({"suite": "x" * ((1 << 20) + 1)}, "has 1,048,577 characters, and at most 1,048,576 are read"),
    ({"format": "x" * 10_000}, "line 1: it is no vector: its format is 'xxx"),
    ({"steps": [{"call": "cpu_data", "shows": 1 << 64}]}, "more than 18,446,744,073,709,551,615"),
    ({"steps": []}, "it has a wrong 'steps': [] is too short"),
    ({"shapes": [[1]]}, "it has 'shapes', which is none of its fields"),
    ({"steps": [1]}, "step 0 is not a JSON object"),
    ({"steps": [{}]}, "step 0 has no 'call'"),
    ({"steps": [{"call": "fly"}]}, "step 0 has a wrong 'call': 'fly' is not one of"),
    ({"steps": [{"call": "look", "memory": 9}]}, "step 0 has no memory 9"),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_file_that_has_no_vectors_is_said(change: dict[str, Any], said: str, tmp_path: Path, refused: Refuse) -> None:
    """A limit is said, with the value; nothing is made before."""
    data = {name: key for name, key in {**GOOD, **change}.items() if key is not None}
    (tmp_path / "some.jsonl").write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")
    line = refused("replay", tmp_path / "some.jsonl")
    assert said in line
    assert len(line) < 500


def test_a_file_without_an_end_is_not_read_to_it(refused: Refuse) -> None:
    assert "/dev/zero" in refused("replay", "/dev/zero")


def test_what_holds_no_vectors_is_another_file(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert not holds_vectors(tmp_path / "bytes")
    assert not holds_vectors(tmp_path / "missing")


def test_requests_to_a_port_are_no_replay(tmp_path: Path, refused: Refuse) -> None:
    (tmp_path / "R09.jsonl").write_text('{"id": 1, "op": "hello", "version": 1, "level": "L2"}\n', encoding="utf-8")

    assert "these are requests to a port: start it with this file as its input" in refused(
        "replay", tmp_path / "R09.jsonl"
    )


def test_a_target_that_there_is_not_is_said(refused: Refuse) -> None:
    assert "./nowhere.so" in refused("replay", ROOT / "vectors" / "cpu_only" / "tour.jsonl", "./nowhere.so")
