"""Test vectors run on ports that are programs, as far as their level shows what a vector is about."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from command_fixtures import run
from port_fixtures import LIMITS, command_of, wrong
from subjects import device_subject

from syncedmem.model import SyncedMemoryError
from syncedmem.spec import Violation
from syncedmem.spec.ports.targets import subject_of
from syncedmem.spec.vectors import replay, vectors
from syncedmem.spec.vectors.replay import left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from syncedmem.spec.ports.process import Port
    from syncedmem.spec.requirements import Level

pytestmark = pytest.mark.deep

RIGHT = shlex.join(command_of("right"))


def vector(suite: str, n: int = 0, edition: str = "caffe") -> dict[str, Any]:
    """Return a vector of a suite."""
    found: dict[str, Any] = json.loads([*vectors(suite, edition)][n].line())
    return found


def of_level(port: Port, level: Level) -> Any:
    return subject_of(port, "port", "safe", level)


@pytest.fixture(scope="module")
def right() -> Iterator[Port]:
    with wrong("right").connect(LIMITS, "") as port:
        yield port


@pytest.mark.parametrize("level", ["L0", "L1", "L2", "L3"])
def test_a_right_port_passes_at_each_level(right: Port, level: Level) -> None:
    assert [None, None, None] == [
        replay(of_level(right, level), item)
        for item in (vector("tour"), vector("modes"), vector("aliases", next(iter(buffers_of_two()))))
    ]


def buffers_of_two() -> Iterator[int]:
    """The vectors in which two memories adopt one buffer."""
    found = enumerate(vectors("aliases", "caffe"))
    return (n for n, item in found if len(item.as_json()["sizes"]) > 1)


def test_a_right_port_fails_when_it_is_told_to(right: Port) -> None:
    assert replay(of_level(right, "L3"), vector("failures")) is None


@pytest.mark.parametrize(
    ("way", "requirement", "said"),
    [
        ("crash", "P01-answers", "the program was ended by SIGSEGV"),
        ("needless copy", "R09-no-needless-copy", "saw allocate gpu, zero gpu, clone cpu"),
        ("wrong view", "R10-same-bytes", "gpu_data shows 0102030405, 5 bytes, expected 00000000"),
        ("leaks", "R27-release-frees-owned", "saw nothing, expected free gpu"),
    ],
)
def test_what_a_port_does_wrong_is_a_difference(way: str, requirement: str, said: str) -> None:
    first = next(
        vector.as_json() for vector in vectors("cells", "caffe") if vector.as_json()["steps"][0]["call"] == "gpu_data"
    )
    with wrong(way).connect(LIMITS, "") as port:
        found = replay(of_level(port, "L3"), first)
    assert found is not None
    assert requirement == found.requirement
    assert said in found.message


def test_a_port_that_makes_no_memory_fails() -> None:
    def make(*_: object, **__: object) -> Any:
        raise Violation("P01-answers", "new: the program ended with status 1")

    assert str(replay(device_subject(make), vector("modes"))) == (
        "step 0, new: P01-answers: new: the program ended with status 1"
    )


def test_what_a_port_cannot_run_is_left_out(right: Port) -> None:
    own = next(n for n, vector in enumerate(vectors("aliases", "caffe")) if '"own":true' in vector.line())
    out = [
        vector("tour", edition="early"),
        {**vector("tour"), "sizes": [(1 << 21) + 1]},
        vector("aliases", own),
    ]
    assert [
        "they are of the machine early, and the port is of caffe",
        "they have memories of more than 2097152 bytes, the largest size of the port",
        "they adopt the memory's own pointer, and the port does not answer the request own_buffer",
    ] == [left_out(of_level(right, "L3"), item) for item in out]
    assert left_out(of_level(right, "L2"), vector("failures")).endswith("a port does so from L3 on, and this is L2")
    assert not left_out(of_level(right, "L3"), vector("failures"))
    assert not any(left_out(device_subject(), item) for item in out)


# --- the command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = [json.dumps(item, separators=(",", ":")) for item in (vector("tour"), vector("failures"))]
    (tmp_path / "some.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "some.jsonl"


def test_the_command_takes_a_program(file: Path) -> None:
    everything, caffe = (
        run("replay", file, "--command", RIGHT),
        run("replay", file, "--command", RIGHT, "--profile", "caffe"),
    )

    assert (0, "2 vectors, 0 failed\n") == (everything.exit_code, everything.output)
    assert (0, "1 vectors, 0 failed\n") == (caffe.exit_code, caffe.output)


def test_if_every_vector_is_left_out_nothing_was_shown(tmp_path: Path) -> None:
    (tmp_path / "early.jsonl").write_text(next(iter(vectors("tour", "early"))).line() + "\n", encoding="utf-8")
    done = run("replay", tmp_path / "early.jsonl", "--command", RIGHT)

    assert 1 == done.exit_code
    assert [
        "1 left out: they are of the machine early, and the port is of caffe",
        "1 vectors, 0 failed, 1 left out",
    ] == done.output.splitlines()


def test_a_subject_is_a_target_too(file: Path) -> None:
    assert (0, "2 vectors, 0 failed\n") == (
        run("replay", file, f"{__file__}:SUBJECT").exit_code,
        run("replay", file).output,
    )


SUBJECT = device_subject()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{file}", "some:maker", "--command", "./port"), "name one port"),
        (("{file}", "--profile", "cafe"), "one of caffe, safe"),
        (("{other}", "--command", "./port"), "--command"),  # a replay of fuzz has none
    ],
)
def test_wrong_options_are_said(file: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "replay.json").write_text("{}", encoding="utf-8")
    done = run("replay", *(argument.format(file=file, other=tmp_path / "replay.json") for argument in arguments))

    assert isinstance(done.exception, SyncedMemoryError)
    assert said in str(done.exception)
