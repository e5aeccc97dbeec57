"""The plugin of pytest: what a test of a user copies is counted, and can be refused."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import pytest
from inner_pytest import run_tests

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
import pytest, syncedmem
from syncedmem import Blob, CopyRefusedError

@pytest.fixture
def blob():
    blob = Blob((4,), device="simulated")
    blob.data = [1, 2, 3, 4]
    blob.gpu_data()  # a copy of the fixture, which is not the test's
    yield blob
    blob.mutable_gpu_data()
    blob.cpu_data()
"""


def outcomes(pytester: pytest.Pytester, tests: str, *options: str) -> dict[str, int]:
    """Run tests of a user; strictly, so that an unknown marker fails."""
    pytester.makepyfile(HEAD + tests)
    run = run_tests(pytester, "--strict-markers", "-W", "error", *options)
    assert 0 == run.observers
    return run.outcomes


def test_pytest_finds_it_by_itself() -> None:
    (entry,) = {point.value for point in entry_points(group="pytest11", name="syncedmem")}

    assert "syncedmem.pytest_plugin" == entry


def test_a_test_counts_its_own_copies_and_not_those_of_its_fixtures(pytester: pytest.Pytester) -> None:
    """In whatever order it names them."""
    tests = """
@pytest.mark.parametrize("turn", [1, 2])
def test_first(copies, blob, turn):
    assert (copies.up, copies.down, copies.bytes) == (0, 0, 0)
    blob.mutable_gpu_data()
    blob.cpu_data()
    assert (copies.up, copies.down, copies.bytes) == (0, 1, 16)

def test_second(blob, copies):
    assert copies.entries == []

def test_without(blob):
    blob.mutable_gpu_data()
    blob.cpu_data()
"""
    assert {"passed": 4} == outcomes(pytester, tests)


def test_a_copy_too_many_fails_the_test(pytester: pytest.Pytester) -> None:
    tests = """
def copied(blob, times):
    for _ in range(times):
        blob.mutable_cpu_data()
        blob.gpu_data()

def test_refused(no_copies, blob):
    copied(blob, 1)

def test_caught(no_copies, blob):
    with pytest.raises(CopyRefusedError):
        copied(blob, 1)
    assert no_copies.up == 0

@pytest.mark.no_copies
def test_refused_by_the_marker(blob):
    copied(blob, 1)

@pytest.mark.no_copies(at_most=2)
def test_allowed(blob):
    copied(blob, 2)

@pytest.mark.no_copies(down=0)
def test_refused_in_one_direction(blob):
    blob.mutable_gpu_data()
    blob.cpu_data()

@pytest.mark.no_copies(2)
def test_refused_after_two(no_copies, copies, blob):
    try:
        copied(blob, 3)
    finally:
        assert no_copies.up == copies.up == 2

@pytest.mark.no_copies(bytes=16)
class TestMarked:
    def test_allowed(self, blob):
        copied(blob, 1)

    def test_refused(self, blob):
        copied(blob, 2)

    @pytest.mark.no_copies(at_most=2)
    def test_the_nearest_marker_holds(self, blob):
        copied(blob, 2)
"""
    assert {"passed": 4, "failed": 5} == outcomes(pytester, tests)


@pytest.mark.parametrize("limits", ["at_most=-1", "bytes=1.5", "allocations='2'", "1, 2", "seconds=3"])
def test_a_wrong_limit_fails_the_test_and_no_other(pytester: pytest.Pytester, limits: str) -> None:
    tests = f"""
@pytest.mark.no_copies({limits})
def test_wrong(blob):
    pytest.fail("ran")

def test_right(copies, blob):
    blob.mutable_cpu_data()
    blob.gpu_data()
    assert copies.up == 1
"""
    pytester.makepyfile(HEAD + tests)
    run = run_tests(pytester)

    assert {"passed": 1, "failed": 1} == run.outcomes
    assert "Failed: ran" not in run.text


def test_a_fixture_that_a_test_asks_for_late_counts_from_then_on(pytester: pytest.Pytester) -> None:
    tests = """
def test_late(request, blob):
    blob.mutable_cpu_data()
    blob.gpu_data()
    copies = request.getfixturevalue("copies")
    blob.mutable_cpu_data()
    blob.gpu_data()
    assert copies.up == 1
"""
    assert {"passed": 1} == outcomes(pytester, tests)


def test_a_test_that_is_skipped_or_fails_before_it_begins_leaves_nothing_behind(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def broken():
    raise ZeroDivisionError

def test_broken(no_copies, broken): ...

def test_skipped(no_copies, blob):
    pytest.skip("late")

def test_after(blob):
    blob.mutable_cpu_data()
    blob.gpu_data()
"""
    assert {"passed": 1, "skipped": 1, "errors": 1} == outcomes(pytester, tests)


def test_a_test_that_is_run_again_begins_anew(pytester: pytest.Pytester) -> None:
    """As plugins do that run what failed once more."""
    pytester.makeconftest(
        """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    assert [it.outcome for it in reports] == ["passed"] * 3
    item._initrequest()
"""
    )
    tests = """
@pytest.mark.no_copies(at_most=1)
def test_it(no_copies, copies, blob):
    blob.mutable_cpu_data()
    blob.gpu_data()
    assert copies.up == 1
"""
    assert {"passed": 1} == outcomes(pytester, tests)


def test_fixtures_of_the_user_with_these_names_come_first(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.fixture
def copies():
    return 3

def test_mine(copies):
    assert copies == 3
"""
    assert {"passed": 1} == outcomes(pytester, tests)


def test_it_can_be_turned_off(pytester: pytest.Pytester) -> None:
    assert {"errors": 1} == outcomes(pytester, "def test_it(copies): ...", "-p", "no:syncedmem")


IMPORTED_BEFORE = "import sys, syncedmem.runtime, pytest; sys.exit(pytest.main(['-q', '-W', 'error', 'test_it.py']))"
WITHOUT_NUMPY = (
    "import sys, syncedmem.pytest_plugin; sys.exit(any(it in sys.modules for it in ('numpy', 'syncedmem.model')))"
)


@pytest.mark.deep
@pytest.mark.parametrize("program", [IMPORTED_BEFORE, WITHOUT_NUMPY], ids=["imported before", "without NumPy"])
def test_pytest_starts(tmp_path: Path, program: str) -> None:
    """With a package that was imported before it; and without loading what it may not need."""
    (tmp_path / "test_it.py").write_text("def test_it(): ...", encoding="utf-8")

    assert 0 == subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False).returncode
