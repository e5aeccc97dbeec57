"""Logs of RMM and CuPy are replayed on another target, and are a corpus."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from backends import BACKENDS
from typer.testing import CliRunner

from syncedmem.cli import app
from syncedmem.model import FileAccessError
from syncedmem.spec.fuzz import HeapStep, TargetError, fuzz
from syncedmem.spec.fuzz.logs import programs_of, read_log

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "Thread,Time,Action,Pointer,Size,Stream"
RMM = f"""{HEADER}
11,10:00:00:000001,allocate,0x1000,256,0x0
12,10:00:00:000002,allocate,0x2000,512,0x7f00
11,10:00:00:000003,allocate failure,(nil),1099511627776,0x0
11,10:00:00:000004,free,0x1000,256,0x0

11,10:00:00:000005,allocate,0x0,0,0x0
11,10:00:00:000006,allocate,0x0,0,0x0
11,10:00:00:000007,deallocate,0x0,0,0x0
11,10:00:00:000008,allocate,0x1000,100,0x0
"""
STEPS = [
    HeapStep("allocate", (0, 256, 0, 1)),
    HeapStep("allocate", (1, 512, 0, 2)),
    HeapStep("free", (0, 1)),
    HeapStep("allocate", (3, 0, 0, 1)),
    HeapStep("allocate", (4, 0, 0, 1)),
    HeapStep("free", (4, 1)),
    HeapStep("allocate", (6, 100, 0, 1)),
]
TWICE = "mutants.allocator.placement:PutBackTwice"


def written(folder: Path, text: str) -> Path:
    path = folder / "log"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_of_rmm_is_read(tmp_path: Path) -> None:
    assert read_log(written(tmp_path, RMM)) == STEPS


def test_streams_are_kept_only_for_those_who_order_them(tmp_path: Path) -> None:
    path = written(tmp_path, RMM)

    assert programs_of(path, 0, streams=True)[0] == tuple(STEPS)
    assert {0} == {step.numbers[-1] for program in programs_of(path, 0, streams=False) for step in program}


def test_a_log_that_rmm_writes_is_read(tmp_path: Path) -> None:
    """RMM writes the file: its logging adaptor stands on a pool over memory of the host, but needs a driver."""
    make: Any = next(it for it in BACKENDS if it.name == "RMM pool").target()
    rmm: Any = importlib.import_module("rmm")
    path = tmp_path / "rmm.csv"
    try:
        logging = rmm.mr.LoggingResourceAdaptor(make(), log_file_name=str(path))
    except Exception as error:  # noqa: BLE001 -- of several kinds, by the version
        pytest.skip(f"no GPU here: {error}")
    first, second = logging.allocate(1000), logging.allocate(3000)
    logging.deallocate(first, 1000)
    logging.deallocate(second, 3000)
    logging.flush()
    found = read_log(next(tmp_path.iterdir()))

    assert [("allocate", 0), ("allocate", 1), ("free", 0), ("free", 1)] == [
        (step.operation, step.numbers[0]) for step in found
    ]
    assert [1000, 3000] == [step.numbers[1] for step in found[:2]]


def test_a_log_that_cupy_writes_is_read(tmp_path: Path) -> None:
    """CuPy's hook writes the lines; what it is told is made up, because there is no GPU."""
    hooks: Any = pytest.importorskip("cupy.cuda.memory_hooks", reason="CuPy is not installed: pip install cupy-cuda12x")
    path = tmp_path / "cupy.jsonl"
    with path.open("w", encoding="utf-8") as file:
        hook = hooks.DebugPrintHook(file=file)
        hook.alloc_postprocess(device_id=0, mem_size=512, mem_ptr=4096)
        hook.malloc_postprocess(device_id=0, size=100, mem_size=512, mem_ptr=4096, pmem_id=77)
        hook.malloc_postprocess(device_id=0, size=1 << 50, mem_size=1 << 50, mem_ptr=0, pmem_id=0)
        hook.malloc_postprocess(device_id=0, size=0, mem_size=0, mem_ptr=0, pmem_id=78)
        hook.free_postprocess(device_id=0, mem_size=512, mem_ptr=4096, pmem_id=77)

    assert ["allocate(0, 100, 0, 1)", "allocate(1, 0, 0, 1)", "free(0, 1)"] == [str(it) for it in read_log(path)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no log of RMM"),
        ("hello\n", "is no log of RMM, whose first line names the columns Action, Pointer, Size"),
        (f"{HEADER}\n1,2,allocate,0x1,5\n", "line 2: 5 values for 6 columns"),
        (f"{HEADER}\n\n1,2,borrow,0x1,5,0\n", "line 3: 'borrow' is no action of RMM"),
        (f"{HEADER}\n1,2,allocate,here,5,0\n", "line 2: 'here' is no size and no address"),
        (f"{HEADER}\n1,2,allocate,0x1,-5,0\n", "line 2: '-5' is no size and no address"),
        (f"{HEADER}\n1,2,free,0x1,5,0\n", "line 2: memory is freed that no line before allocates"),
        (f"{HEADER}\n1,2,allocate,0x1,5,0\n1,2,allocate,0x1,5,0\n", "line 3: this memory is in use since line 2"),
        ('{"hook":"alloc"}\n{"hook"\n', "line 2: no JSON object of CuPy's DebugPrintHook"),
        ('{"hook":"alloc"}\n[]\n', "line 2: no JSON object of CuPy's DebugPrintHook"),
        ('{"hook":"malloc","size":1}\n', "line 1: 'None' is no size and no address"),
        ('{"hook":"reclaim"}\n', "line 1: 'reclaim' is no hook of CuPy"),
    ],
)
def test_the_first_bad_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TargetError) as caught:
        read_log(path)

    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    for path in (tmp_path, tmp_path / "missing", tmp_path / "binary"):
        with pytest.raises(FileAccessError):
            read_log(path)


def test_a_long_log_is_taken_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part begins with the blocks that live there."""
    monkeypatch.setattr("syncedmem.spec.fuzz.logs._PART", 3)
    parts = programs_of(written(tmp_path, RMM), 0, streams=True)[:3]

    assert parts == [tuple(STEPS[:3]), (STEPS[1], *STEPS[3:6]), (STEPS[1], STEPS[3], STEPS[6])]


def long_log(folder: Path) -> Path:
    lines = [
        f"1,2,allocate,{1 + i:#x},{100 + i % 50},0x0\n1,2,free,{1 + i:#x},{100 + i % 50},0x0\n" for i in range(300)
    ]
    return written(folder, f"{HEADER}\n{''.join(lines)}")


def test_pieces_of_a_log_are_varied(tmp_path: Path) -> None:
    """A log is a corpus: the same seed makes the same variations of it."""
    path = long_log(tmp_path)
    whole, varied = programs_of(path, 7, streams=False)
    sizes = {step.numbers[1] for step in varied if step.operation == "allocate"}

    assert len(whole) == 600
    assert [whole, varied] == programs_of(path, 7, streams=False)
    assert varied != programs_of(path, 8, streams=False)[1]
    assert {0, 51, 128, 256} <= sizes
    assert {step.numbers[0] for step in varied if step.operation == "allocate"} <= {
        step.numbers[0] for step in varied if step.operation == "free"
    }
    assert [] == programs_of(written(tmp_path, HEADER), 0, streams=False)


@pytest.mark.deep
def test_the_requests_of_a_log_find_a_bug(tmp_path: Path) -> None:
    """The bug needs that a block is freed and two of its size are requested."""
    rows = ("allocate,0x1", "free,0x1", "allocate,0x1", "allocate,0x2")
    path = written(tmp_path, f"{HEADER}\n" + "".join(f"1,2,{row},64,0x0\n" for row in rows))
    report = fuzz(TWICE, steps=10, logs=[path], first=True, hang=30)

    assert [("A01-distinct-pointers", "log")] == [(it.requirement, it.generator) for it in report.findings]
    assert [("log", 1)] == [(it.name, it.cases) for it in report.suites]


@pytest.mark.deep
def test_a_correct_allocator_passes_with_a_log(tmp_path: Path) -> None:
    done: list[tuple[str, int, int]] = []
    report = fuzz(
        "syncedmem:CPUDeviceAllocator",
        steps=10,
        hang=30,
        logs=[long_log(tmp_path)],
        on_progress=lambda name, at, of: done.append((name, at, of)),
    )

    assert report.passed
    assert report.suites[0].steps > 600
    assert report.suites[0].steps == [at for name, at, _ in done if name == "log"][-1]


@pytest.mark.deep
def test_the_command_takes_logs(tmp_path: Path) -> None:
    path = written(tmp_path, RMM.replace("allocate failure", "loan"))
    arguments = [
        "fuzz",
        "libc.so.6:malloc,free",
        "--seconds",
        "1",
        "--hang",
        "30",
        "--out",
        str(tmp_path),
        "--log",
        str(path),
    ]
    bad = CliRunner().invoke(app, arguments)

    assert isinstance(bad.exception, TargetError)
    assert "line 4: 'loan' is no action of RMM" in str(bad.exception)
    path.write_text(RMM, encoding="utf-8")
    report = json.loads(CliRunner().invoke(app, [*arguments, "--json", "-"]).stdout)
    assert report["passed"]
    assert "log" in {it["generator"] for it in report["generators"]}
