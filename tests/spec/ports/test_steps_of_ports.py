"""Steps of ports: what they mean, what is seen of them, and how short the programs are that show something."""

from __future__ import annotations

import json
from contextlib import suppress
from ctypes import CFUNCTYPE, c_void_p, cast, memset, sizeof, string_at
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from port_fixtures import LIMITS, wrong

from syncedmem.cli.options import limits_of
from syncedmem.model import Input, caffe
from syncedmem.spec import Violation
from syncedmem.spec.cases.writing import Writer
from syncedmem.spec.engine.actions import Action
from syncedmem.spec.engine.report import Tolerance
from syncedmem.spec.engine.shrinking import shortest
from syncedmem.spec.kit.trial import bench_of, plainer, run_case
from syncedmem.spec.ports.harness import abi
from syncedmem.spec.ports.harness.library import Library, LibraryError
from syncedmem.spec.ports.targets import subject_of
from syncedmem.spec.record.observation import Observation
from syncedmem.spec.record.steps import Buffer, Step
from syncedmem.spec.record.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from syncedmem.spec.kit.trial import Bench


def after(world: World, step: Step) -> tuple[Observation, World]:
    """What must be seen of a step, and the world after it."""
    found = world.after(step)
    assert found is not None
    return found


def a_new_memory() -> tuple[Observation, World]:
    return after(World.of(caffe.CAFFE, None, safe=True), Step("new", size=3))


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Yield a right port, at the level L3."""
    with wrong("right").connect(LIMITS, "") as port:
        yield bench_of(subject_of(port, "right", "safe", "L3"))


def program_of(bench: Bench) -> list[str]:
    """Return what a port was asked since its case began."""
    return [json.loads(line)["op"] for line in bench.performer.program()]


def test_contents_belong_to_buffers_also_to_one_that_two_memories_have(bench: Bench) -> None:
    both = Buffer("both", "cpu", 7)
    case = [Step("new", number, size=4) for number in (0, 1)]
    case += [Step("call", 0, "set_cpu_data", both), Step("call", 1, "set_cpu_data", both._replace(content=None))]
    case += [Step("write", 0, argument=both, write=9), Step("look", 1)]
    trial = run_case(bench, (*case, Step("call", 1, "mutable_cpu_data", write=11), Step("look", 0)))

    assert {"both": 11} == trial.world.buffers
    assert [{"cpu": 11}] * 2 == [trial.world.shown(number).sides for number in (0, 1)]


def test_what_means_nothing_is_not_done(bench: Bench) -> None:
    """A call of a memory that is not there, and a write into a buffer that nobody has adopted."""
    lost = Buffer("lost", "cpu", 3)
    trial = run_case(bench, (Step("call", 0, "cpu_data"), Step("new", size=3), Step("write", argument=lost, write=1)))

    assert [Step("new", size=3)] == trial.done
    assert ["hello", "new"] == program_of(bench)


def test_an_action_that_a_call_does_not_have_cannot_fail(bench: Bench) -> None:
    trial = run_case(bench, (Step("new", size=3), Step("call", 0, "cpu_data", fail=3), Step("call", 0, "cpu_data")))

    assert ["", ""] == [step.how for step in trial.done[1:]]
    assert [0, 0] == [step.fail for step in trial.done[1:]]


def test_after_a_failure_nothing_has_changed() -> None:
    new, world = a_new_memory()
    seen, left = after(world, Step("call", 0, "gpu_data", fail=2))

    assert ("failed", new.head, {}) == (seen.refused, seen.head, seen.live)
    assert left.memories == world.memories
    done, _ = after(world, Step("call", 0, "gpu_data"))
    assert (Action("allocate", "gpu", "", 3, pinned=False), Action("zero", "gpu", "", 3)) == done.actions


@pytest.mark.parametrize(
    ("seen", "requirement"),
    [
        (Observation(refused="no"), "R05-zeroed-first"),
        (Observation(refused="", head="SYNCED"), "R11-head"),
        (Observation(refused="", actions=()), "R03-allocate-when-needed"),
        (Observation(refused="", view=b"abc"), "R10-same-bytes"),
        (Observation(refused="", viewed=False), "R10-same-bytes"),
        (Observation(refused="", sides={"cpu": b"abc"}), "R10-same-bytes"),
        (Observation(refused="", flags={"own_cpu_data": False}), "R23-own-flags"),
        (Observation(refused="", size=4), "R31-size-constant"),
        (Observation(refused=""), ""),
        (Observation(), ""),
    ],
)
def test_what_was_not_seen_is_not_judged(bench: Bench, seen: Observation, requirement: str) -> None:
    before, world = a_new_memory()
    step = Step("call", 0, "cpu_data")
    difference = bench.comparison.first(step, before, after(world, step)[0], seen, before)

    assert requirement == (difference.requirement if difference else "")


@pytest.mark.parametrize(("excepted", "found"), [("R09-no-needless-copy", False), ("R05-zeroed-first", True)])
def test_what_is_excepted_lets_a_case_go_on_only_if_it_harms_nothing_else(excepted: str, found: bool) -> None:
    """Memory that was not zeroed shows other bytes later: that is no violation of its own."""
    before, world = a_new_memory()
    step = Step("call", 0, "cpu_data")
    due, _ = after(world, step)
    actions = due.actions or ()
    done = (*actions, Action("copy", "cpu", "gpu", 3)) if excepted.startswith("R09") else actions[:1]
    with wrong("right").connect(LIMITS, "") as port:
        comparison = bench_of(subject_of(port, "right", "safe", "L3"), Tolerance([excepted])).comparison
        difference = comparison.first(step, before, due, Observation(refused="", actions=done), before)

    assert found == (difference is not None)


def test_a_shortest_program_has_small_memories_and_looks_at_nothing_else() -> None:
    with wrong("wrong view").connect(LIMITS, "") as port:
        what = bench_of(subject_of(port, "wrong view", "safe", "L3"))
        adopt, read = Input(caffe.SET_CPU_DATA), Input(caffe.GPU_DATA)
        case = Writer(caffe.CAFFE, 4096, safe=True).add(adopt, Input(caffe.MUTABLE_CPU_DATA), adopt, read).done()
        with pytest.raises(Violation) as caught:
            run_case(what, case)
        found = shortest(case, caught.value, partial(run_case, what), simpler=plainer, program=port)

    requests = [json.loads(line) for line in found.statements]
    assert ["hello", "new", "gpu_data"] == [request["op"] for request in requests]
    assert [2, 1] == [requests[1]["memory"], requests[1]["size"]]


def test_a_time_that_is_given_bounds_the_first_answer_too() -> None:
    assert (2.0, 2.0) == (limits_of(2.0, 1).seconds, limits_of(2.0, 1).first)
    assert (10.0, 60.0) == (limits_of(None, 1).seconds, limits_of(None, 1).first)


@pytest.mark.deep
def test_the_state_that_a_library_is_asked_for_is_zero_before(c_port: Callable[..., str]) -> None:
    structure: Any = abi.STRUCTURES["state"]
    tables: Any = abi.STRUCTURES["port"]
    library: Any = Library(c_port("port"))
    told: list[bytes] = []

    def note(_: int, state: int) -> None:
        told.append(string_at(state, sizeof(structure)))
        memset(state, 3, sizeof(structure))

    library.answer({"id": 1, "op": "hello", "version": 1, "level": "L0"})
    library.answer({"id": 2, "op": "new", "memory": 1, "size": 3})
    table = tables.from_buffer_copy(library._table)  # its own is constant
    kept: Any = CFUNCTYPE(None, c_void_p, c_void_p)(note)
    table.state = cast(kept, dict(tables._fields_)["state"])
    library._table = table
    for _ in range(2):
        with suppress(LibraryError):  # a head of 3 and a half is none
            library.answer({"id": 3, "op": "state", "memory": 1})

    assert [b"\0" * len(told[0])] * 2 == told
