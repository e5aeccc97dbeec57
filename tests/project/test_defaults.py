"""The command line and the library have the same defaults."""

from __future__ import annotations

from inspect import signature

from syncedmem.cli.fuzz import fuzz as command
from syncedmem.cli.verify import verify
from syncedmem.model.defaults import DEFAULT_STEPS, FUZZ
from syncedmem.spec import check_conformance
from syncedmem.spec.fuzz import fuzz


def test_the_command_line_and_the_library_have_the_same_defaults() -> None:
    """The model declares them, because ``--help`` must not import the spec."""
    here, there = (
        {name: parameter.default for name, parameter in signature(function).parameters.items()}
        for function in (command, fuzz)
    )
    declared = FUZZ._asdict()

    assert declared == {name: there[name] for name in declared} == {name: here[name] for name in declared}
    assert {DEFAULT_STEPS} == {signature(item).parameters["steps"].default for item in (check_conformance, verify)}
