"""If a test is skipped for a reason that is not listed, the run fails and names the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"

SKIPPED_TEST = """
import pytest

def test_it():
    pytest.skip({reason!r})
"""
SKIPPED_MODULE = """
import pytest

pytest.skip({reason!r}, allow_module_level=True)
"""
EXPECTED_FAILURE = """
import pytest

@pytest.mark.xfail(reason={reason!r})
def test_it():
    assert False
"""
LISTED, UNLISTED = "no OpenCL here: there is no driver", "it was in the way"


@pytest.mark.deep
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("program", "reason", "passes"),
    [
        (SKIPPED_TEST, LISTED, True),
        (SKIPPED_TEST, UNLISTED, False),
        (SKIPPED_TEST, f"{UNLISTED}: {LISTED}", False),
        (SKIPPED_MODULE, LISTED, True),
        (SKIPPED_MODULE, UNLISTED, False),
        (EXPECTED_FAILURE, UNLISTED, True),
    ],
    ids=["test", "unlisted test", "not its beginning", "module", "unlisted module", "expected failure"],
)
def test_a_skip_for_an_unlisted_reason_fails_the_run(
    tmp_path: Path, program: str, reason: str, passes: bool, workers: int
) -> None:
    (tmp_path / "test_small.py").write_text(program.format(reason=reason), encoding="utf-8")
    # Without any test, pytest would return another status.
    (tmp_path / "test_another.py").write_text("def test_it():\n    assert True\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "allowed_skips", "-n", str(workers), "--rootdir", str(tmp_path)]
    path = os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [*command, "-c", os.devnull, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0 if passes else 1) == run.returncode, run.stdout
    assert (f": {reason}" in run.stdout.partition("tests/support/allowed_skips.py")[2]) is not passes
