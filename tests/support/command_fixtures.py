"""A pytest plugin with a fixture for commands that are refused: one line on standard error, and exit status 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from syncedmem.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable


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
        assert 1 == said.err.count("\n") or "Usage: " in said.err
        return said.err

    return refuse
