"""A pytest plugin for tests of the command line: what a refused command says, and no signs of life of the fuzzer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from syncedmem.cli import app, main

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result


def run(*arguments: object, code: int | None = None) -> Result:
    """Run a command in this process; it ends with this status, if one is given."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert code in (None, result.exit_code), result.output
    return result


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command line with something wrong in it, and returns its line of standard error."""

    def refuse(*arguments: object) -> str:
        monkeypatch.setattr("sys.argv", ["syncedmem", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert (2, "") == (stopped.value.code, said.out)
        assert (1, True) == (said.err.count("\n"), said.err.startswith("syncedmem: ")) or "Usage: " in said.err
        return said.err

    return refuse


@pytest.fixture
def no_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine there would be lines of progress among those that are compared."""
    monkeypatch.setattr("syncedmem.cli.fuzz._SIGNS", (3600.0, 3600.0))
