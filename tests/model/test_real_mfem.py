"""The example of MFEM beside MFEM itself, call by call: ``make deep PART=mfem``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from machines import example

from syncedmem.model.states import stepper
from syncedmem.model.suites import tour

PYTHON = Path(__file__).parents[2] / ".venv-mfem" / "bin" / "python"
SCRIPT = Path(__file__).parents[1] / "support" / "valid_bits.py"


def observed(sequences: list[list[str]]) -> list[list[str]]:
    """Return the valid bits that MFEM shows before and after each call."""
    if not PYTHON.is_file():
        pytest.skip("mfem is not installed: make .venv-mfem/ready")
    done = subprocess.run([PYTHON, SCRIPT], input=json.dumps(sequences), capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.deep
def test_mfem_takes_every_transition_as_its_example_says() -> None:
    machine = example("mfem")["MFEM"]
    words = list(tour(machine))
    expected: list[list[str]] = []
    for word in words:
        state = stepper(machine).start
        heads = [state.head]
        for entry in word:
            step = stepper(machine).step(state, entry)
            assert step is not None
            state = step.after
            heads.append(state.head)
        expected.append(heads)

    assert {head for heads in expected for head in heads} == set(machine.heads)
    assert expected == observed([[str(entry) for entry in word] for word in words])
