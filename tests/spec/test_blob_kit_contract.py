"""The kit for blobs: which attributes of a blob it uses, and how short the reproducers of its rules are."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from inspect import Parameter, signature
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob, IntHandmadeBlob
from subjects import device_subject, host_subject

from syncedmem.runtime import Blob
from syncedmem.spec import check_blobs
from syncedmem.spec.blob.calls import CALLS
from syncedmem.spec.blob.steps import BlobStep, case_of, valued
from syncedmem.spec.blob.trial import blob_bench, run_case, shortened
from syncedmem.spec.engine.violation import Violation
from syncedmem.spec.memory.reference import ReferenceMemory, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.spec import Subject

MADE = "subject.make((1,), dtype='float32', host=subject.host, device=subject.device)"
_OWN = {item.__module__ for item in (*IntHandmadeBlob.__mro__, ReferenceMemory)} | {__name__}
NAMES = [name for call in CALLS for name in call.names]


def watching(base: Any, used: set[str], **more: Any) -> Any:
    """Return a class that records which of its attributes others use."""

    def look(self: object, name: str) -> Any:
        asker: Any = getattr(sys, "_getframe")(1)  # noqa: B009 -- there is no public way to find the caller
        if asker.f_globals.get("__name__") not in _OWN:
            used.add(name)
        return base.__getattribute__(self, name)

    return type(base.__name__, (base,), {"__getattribute__": look, **more})


@pytest.mark.deep
@pytest.mark.parametrize(
    ("base", "profile", "subject"),
    [
        (HandmadeBlob, "safe", device_subject),
        (IntHandmadeBlob, "caffe", device_subject),
        (HandmadeBlob, "safe", host_subject),
    ],
)
def test_the_kit_uses_what_is_listed(base: Any, profile: Any, subject: Callable[[Any], Subject]) -> None:
    """It uses the whole list and nothing else, with a device and without, and at most four attributes of a memory."""
    used, of_memories = set[str](), set[str]()
    memories = watching(ReferenceMemory, of_memories)

    def memory(blob: Any, size: int) -> Any:
        return memories(size, host=blob.host, device=blob.device)

    wired = replace(subject(watching(base, used, memory=memory)), profile=profile)
    verdict = check_blobs(wired, steps=0)
    kinds = {"always", "messages", profile, "no device" if wired.device is None else "device"}

    assert [] == verdict.violations
    assert {name for call in CALLS for name in call.names if call.asked in kinds} == used
    assert {"head", "size", "cpu_data", "gpu_data"} >= of_memories > {"head", "size"}


@pytest.mark.parametrize("make", [HandmadeBlob, Blob])
def test_what_is_listed_is_there_with_these_arguments(make: Any) -> None:
    """Both our blobs take the listed arguments with the same defaults, and flags with the same names."""
    assert len(NAMES) == len(set(NAMES))
    for call in CALLS:
        for name in call.names:
            found = getattr(make, name, None)
            if call.arguments is None:
                assert not isinstance(found, FunctionType) or name == "shape_string"
                continue
            names: dict[str, Any] = {}
            exec(f"def listed(self, {call.arguments}): ...", names)  # noqa: S102 -- the text is from the table of the kit
            listed, there = told(names["listed"]), told(found)
            assert listed == there[: len(listed)], name
            assert all(default is not Parameter.empty for _, default, _ in there[len(listed) :])


def told(function: Any) -> list[tuple[Any, ...]]:
    """Return the kind and the default of each positional parameter, and the names of flags."""
    parameters = list(signature(function).parameters.values())[1:]
    return [
        (parameter.kind, parameter.default, parameter.name if isinstance(parameter.default, bool) else "")
        for parameter in parameters
        if parameter.kind is not Parameter.KEYWORD_ONLY
    ]


# --- reproducers of rules


@pytest.mark.parametrize(
    ("bug", "lines"),
    [
        ("SizeWraps", ["blob.reshape((2097152, 2097152, 2097152))"]),
        ("TakesSets", ["blob.reshape({2, 3})"]),
        ("AdoptsAnyType", ["blob.set_cpu_data(array('d', bytes(48)))"]),
        ("AdoptsOwnData", ["blob.reshape((2, 3))", "blob.set_cpu_data(blob.mutable_cpu_data())"]),
        ("EmptyIsNull", ["blob2 = subject.make(dtype='float32', host=host, device=device)", "blob.copy_from(blob2)"]),
        (
            "FloatsFirst",
            [
                f"message = type({MADE}.to_proto())()",
                "message.shape.dim.extend([3])",
                "message.data.extend([1.0, 2.0, 3.0])",
                "message.double_data.extend([4.0, 5.0, 6.0])",
                "blob.from_proto(message)",
            ],
        ),
    ],
)
def test_a_rule_shows_what_it_needs_and_no_more(bug: str, lines: list[str]) -> None:
    """After the imports, the log and the first blob, the reproducer has only these lines, and it runs."""
    make: Any = BLOB_BUGS[bug].make
    found = check_blobs(device_subject(make), steps=0, suites=["rules"]).violations[0]
    program = [line for line in found.statements if "import" not in line and "recorded" not in line]

    assert BLOB_BUGS[bug].requirement == found.requirement
    assert (True, lines) == (program[0].startswith("blob = subject.make("), program[1:])
    names: dict[str, Any] = {"subject": device_subject(make)}
    with suppress(Refused):  # the last line may raise it, if the bug is a wrong refusal
        exec(found.reproducer, names)  # noqa: S102 -- a reproducer is there to be run
    assert isinstance(names["blob"], make)


def test_a_count_of_caffe_is_shown_as_briefly() -> None:
    subject = replace(device_subject(HandmadeBlob), profile="caffe")
    found = check_blobs(subject, steps=0, suites=["rules"]).violations[0]

    assert "B44-int-count" == found.requirement
    assert ["blob.reshape((65536, 65536))"] == [line for line in found.statements if "reshape" in line]
    assert 4 == len(found.statements)


def test_what_a_case_itself_needs_is_not_left_out() -> None:
    """A check whose blob would have another shape does not show a bug."""

    class Forgets(HandmadeBlob):
        @property
        def count(self) -> int:
            return 7 if self.axes == (3, 2) else super().count

    steps = (
        BlobStep(0, "mutable_cpu_data"),
        BlobStep(0, "reshape", ((5,),)),
        BlobStep(0, "reshape", ((3, 2),), about="B03-shape"),
        valued("B03-shape", 6, "count"),
    )
    case, bench = case_of(((2, 3),), steps), blob_bench(device_subject(Forgets))
    with pytest.raises(Violation) as caught:
        run_case(bench, case)
    found = shortened(bench, case, caught.value)

    assert caught.value.requirement == found.requirement
    assert ["blob = subject.make((2, 3), dtype='float32', host=host, device=device)", "blob.reshape((3, 2))"] == [
        line for line in found.statements if "import" not in line and "recorded" not in line
    ]


def test_a_case_of_nothing_ends() -> None:
    assert 0 == run_case(blob_bench(device_subject(HandmadeBlob)), ()).steps
