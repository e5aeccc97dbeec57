"""Programs with loops, and how programs become short: always the same way, and never what a target does not accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from syncedmem.spec.fuzz import Finding, FuzzWanted, HeapStep, Replay, TargetError
from syncedmem.spec.fuzz.loops import folded, items_from_json, program_as_json, unfolded
from syncedmem.spec.fuzz.shortening import SpentError, shortened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POOL = "mutants.allocator:Pool"


def taken(block: int, size: int = 64, alignment: int = 0) -> HeapStep:
    return HeapStep("allocate", (block, size, alignment, 0))


def gone(block: int) -> HeapStep:
    return HeapStep("free", (block, 0))


LOOPS: dict[str, tuple[tuple[HeapStep, ...], list[str]]] = {
    "a counter": ((taken(0), gone(0)) * 1029, ["repeat 1029: allocate(0, 64); free(0)"]),
    "many blocks": (
        tuple(taken(number) for number in range(91)),
        ["repeat 91 with i: allocate(i, 64)"],
    ),
    "every second block": (
        tuple(step for number in range(1, 9, 2) for step in (taken(number), HeapStep("compare", ()))),
        ["repeat 4 with i: allocate(2 * i + 1, 64); compare()"],
    ),
    "with a head and a tail": (
        (taken(5, 8), *(taken(0), gone(0)) * 3, gone(5)),
        ["allocate(5, 8)", "repeat 3: allocate(0, 64); free(0)", "free(5)"],
    ),
    "twice is written out": ((taken(0), gone(0)) * 2, ["allocate(0, 64)", "free(0)"] * 2),
    "backwards is no loop": (
        tuple(gone(number) for number in (3, 2, 1)),
        ["free(3)", "free(2)", "free(1)"],
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_repeats_is_written_as_a_loop(name: str) -> None:
    program, written = LOOPS[name]
    items = folded(program)

    assert written == [str(item) for item in items]
    assert program == unfolded(items) == items_from_json(program_as_json(program))


def test_a_loop_is_written_in_python_and_in_files(tmp_path: Path) -> None:
    program = (*(taken(number) for number in range(40)), *(taken(50), gone(50)) * 50)
    replay = Replay(FuzzWanted(POOL, skip=("A17-statistics",)), Finding("A01-distinct-pointers", "", program))
    file = tmp_path / "replay.json"
    file.write_text(replay.text(), encoding="utf-8")

    assert "    for i in range(40): driver.allocate(i, 64)\n" in replay.python()
    assert "    for _ in range(50): driver.allocate(50, 64); driver.free(50)\n" in replay.python()
    assert "skip=('A17-statistics',)" in replay.python()
    exec(replay.python(), {})  # noqa: S102 -- what is printed has to run
    assert '["repeat", 40, [["allocate", 0, 64]], 1]' in file.read_text(encoding="utf-8")
    assert replay.as_json() == Replay.read(file).as_json()


NO_LOOPS: list[tuple[list[Any], str]] = [
    (["repeat"], "not a loop"),
    (["repeat", 0, [["compare"]]], "not a loop"),
    (["repeat", 2, []], "not a loop"),
    (["repeat", 2, [["compare"]], -1], "not a loop"),
    (["repeat", 2, [["fly"]]], "not a step"),
    (["allocate", 0, 1 << 64], "size must be at most 18,446,744,073,709,551,615"),
    (["allocate", 1 << 32, 8], "block must be at most 4,294,967,295"),
    (["free", 0, 1 << 16], "stream must be at most 65,535"),
    (["cycle", 8, 1 << 40], "count must be at most 1,048,576"),
    (["repeat", 1 << 40, [["compare"]]], "a program has at most 1,310,720 steps"),
]


@pytest.mark.parametrize(("data", "said"), NO_LOOPS)
def test_what_is_no_loop_is_refused(data: list[Any], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        items_from_json([data])


# --- shortening


def counts_to(most: int, operation: str = "allocate") -> Callable[[tuple[HeapStep, ...]], bool]:
    """A question: whether a program has so many steps of an operation."""

    def question(program: tuple[HeapStep, ...]) -> bool:
        return sum(step.operation == operation for step in program) >= most

    return question


@pytest.mark.parametrize("operation", ["calloc", "resize", "request_too_much", "copy"])
def test_a_counter_of_any_operation_becomes_a_loop(operation: str) -> None:
    numbers = {"calloc": (7, 16), "resize": (1, 9), "request_too_much": (1 << 50, 0), "copy": (1, 2)}[operation]
    program = (taken(1), taken(2), *(HeapStep(operation, numbers), HeapStep("compare", ())) * 40)
    short = shortened(program, counts_to(25, operation))

    assert 25 == sum(step.operation == operation for step in short)
    assert len(folded(short)) <= 3


def test_an_alignment_stays_a_power_of_two() -> None:
    """An alignment of 7 was once shown, which no allocator accepts."""
    seen: set[int] = set()

    def fails(program: tuple[HeapStep, ...]) -> bool:
        seen.update(step.numbers[2] for step in program)
        return any(step.numbers[2] > 100 for step in program)

    assert (taken(0, 1, 128),) == shortened((taken(3, 1000, 4096),), fails)
    assert all(item & (item - 1) == 0 for item in seen)


def test_the_same_finding_always_becomes_the_same_program() -> None:
    """The effort is counted, and not timed; a long program has more of it."""
    program = tuple(taken(number, number * 37 % 1000 + 1) for number in range(300))

    def fails(steps: tuple[HeapStep, ...]) -> bool:
        return sum(step.numbers[1] for step in steps) > 60_000

    tried: list[int] = []

    def counted(steps: tuple[HeapStep, ...]) -> bool:
        tried.append(len(steps))
        return fails(steps)

    first = shortened(program, counted, 60)

    assert first == shortened(program, fails, 60)
    assert len(tried) <= 60
    assert program == shortened(program, fails, 0)


def test_what_is_shortest_stays_if_there_is_no_time_for_more() -> None:
    left = iter(range(3))

    def fails(steps: tuple[HeapStep, ...]) -> bool:
        if next(left, None) is None:
            raise SpentError
        return len(steps) > 5

    program = tuple(taken(number, number + 1) for number in range(100))

    assert program[-24:] == shortened(program, fails)


def test_the_steps_of_all_tries_have_a_limit() -> None:
    """A long program that is no loop, and of which nearly all is needed, was once shortened for minutes."""
    program = tuple(taken(number, number * number % 1009 + 1) for number in range(30_000))
    tried: list[int] = []

    def fails(steps: tuple[HeapStep, ...]) -> bool:
        tried.append(len(steps))
        return steps[:1] == program[:1] and len(steps) > 29_900

    assert program == shortened(program, fails)
    assert sum(tried) <= 1_030_000
