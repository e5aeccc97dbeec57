"""`make types` checks that every symbol has a type; the check finds a symbol that has none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from complete_types import main

if TYPE_CHECKING:
    import pytest


def symbol(name: str, *messages: str) -> dict[str, object]:
    """Return a symbol in the format of pyright's report."""
    errors = [{"severity": "error", "message": f"{message}\n  more"} for message in messages]
    return {"name": name, "isTypeKnown": not messages, "diagnostics": errors}


def report(*symbols: dict[str, object]) -> str:
    blob = symbol("syncedmem.runtime.blobs.blob.Blob")
    return json.dumps({"typeCompleteness": {"symbols": [blob, *symbols]}})


def test_a_symbol_without_a_type_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(lambda: report(symbol("syncedmem.model.one", "Type is missing")))
    assert "syncedmem.model.one: Type is missing\n1 symbols have types; 1 have not\n" == capsys.readouterr().out


def test_that_nothing_was_looked_at_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(lambda: json.dumps({"typeCompleteness": {"symbols": []}}))
    assert "pyright has not found the package\n" == capsys.readouterr().out
