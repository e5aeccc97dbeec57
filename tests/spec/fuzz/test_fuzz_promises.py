"""The promises of a target: the record of its capabilities, and which promises and numbers are refused."""

from __future__ import annotations

from typing import Any

import pytest
from allocator_conventions import Rmm, Warp

from syncedmem.spec.fuzz import Capabilities, TargetError, fuzz


@pytest.mark.parametrize(
    ("promises", "said"),
    [
        ({"alignment": "3"}, "alignment must be a power of two up to 1048576, got 3"),
        ({"alignment": "many"}, "got 'many'"),
        ({"alignment": "0"}, "power of two"),
        ({"limit": "-1"}, "limit must not be negative, got -1"),
        ({"zero_size": "maybe"}, "zero_size must be one of any, null, unique, error, got 'maybe'"),
        ({"thread_safe": "true"}, "thread_safe must be one of yes, no, got 'true'"),
        ({"host_readable": "true"}, "host_readable must be one of yes, no, ask, got 'true'"),
        ({"speed": "high"}, "there is no promise 'speed'; there are alignment, zero_size"),
        ({"wrong_size": "detect"}, "wrong_size=detect contradicts sized_free=no"),
        ({"out_of_memory": ""}, "out_of_memory names no exception"),
        ({"foreign_free": "detect", "double_free": "ignore"}, "contradicts double_free=ignore"),
    ],
)
def test_a_contradictory_record_is_refused(promises: dict[str, str], said: str) -> None:
    with pytest.raises(TargetError) as caught:
        Capabilities().with_promises(promises)

    assert said in str(caught.value)


def test_a_record_is_data_and_back() -> None:
    record = Capabilities().with_promises(
        {"alignment": "64", "host_readable": "ask", "zeroed": "yes", "out_of_memory": "null,MemoryError"}
    )

    assert record == Capabilities().with_promises(record.as_json())
    assert Capabilities().with_promises({"host_readable": "no"}).host_readable is False


@pytest.mark.deep
@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        (Warp, {"promises": {"stream_ordered": "yes"}}, "stream_ordered=yes contradicts the target"),
        (Warp, {"threads": 2}, "2 threads, but thread_safe=no"),
        (Warp, {"threads": 257}, "at most 256, got 257"),
        (Rmm, {"promises": {"sized_free": "no"}}, "sized_free=no contradicts the target: its free is told the size"),
        (Rmm, {"promises": {"out_of_memory": "MemoryError,OutOfPaper,null"}}, "OutOfPaper"),
        ("libc.so.6:malloc,free", {"promises": {"sized_free": "yes"}}, "sized_free=yes contradicts the target"),
    ],
)
def test_promises_that_the_target_cannot_keep_are_refused(target: object, options: dict[str, Any], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        fuzz(target, **options)


@pytest.mark.parametrize("name", ["steps", "seconds", "threads", "hang"])
@pytest.mark.parametrize("number", [0, -1, float("nan")])
def test_numbers_have_to_be_more_than_none(name: str, number: float) -> None:
    numbers: dict[str, Any] = {name: number}
    with pytest.raises(TargetError, match=f"{name} must be more than 0, got {number:g}"):
        fuzz(Warp, **numbers)
