"""The mark ``deep``: tests that ``make deep`` runs, and the gate does not.

A test is quick if it takes less than a second on an idle core and starts no compiler, no browser, no other Python and
no build of documentation.  All others are marked ``@pytest.mark.deep``.  ``@pytest.mark.deep(quick=3)`` marks a family,
the cases of one parametrised test: three of them stay quick, spread evenly over the family, and always the same.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

__all__ = ["pytest_collection_modifyitems"]


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the mark from the cases of each family that stay quick."""
    families: defaultdict[tuple[str, int], list[tuple[pytest.Item, pytest.Mark]]] = defaultdict(list)
    for item in items:
        for mark in item.iter_markers("deep"):
            if quick := mark.kwargs.get("quick"):
                families[item.nodeid.partition("[")[0], quick].append((item, mark))
    for (_, quick), cases in families.items():
        for number in range(min(quick, len(cases))):
            item, mark = cases[number * len(cases) // min(quick, len(cases))]
            item.own_markers.remove(mark)
