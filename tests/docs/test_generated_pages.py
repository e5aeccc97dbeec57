"""The pages that are generated from the spec."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from generated_pages import COMBINATIONS, PAGES, UNREACHABLE, policy_table, reached, stale, why_unreachable

from syncedmem.model import EDITIONS
from syncedmem.spec import Policy

DOCS = Path(__file__).parents[2] / "docs"


def test_they_are_up_to_date() -> None:
    assert [] == stale(DOCS)


def test_every_field_of_a_policy_is_told() -> None:
    names = [line.split("`")[1] for line in policy_table().splitlines()[2:]]

    assert [it.name for it in fields(Policy)] == names


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_combination_is_a_configuration_or_has_a_reason(edition: str) -> None:
    """No reason holds for a configuration that calls reach."""
    reasons = [holds for holds in UNREACHABLE.values() if any(holds(edition, it) for it in COMBINATIONS)]

    assert 3 <= len(reasons)
    assert sorted(COMBINATIONS) == sorted([*reached(edition), *why_unreachable(edition)])
    assert [] == [it for it in reached(edition) if any(holds(edition, it) for holds in reasons)]


@pytest.mark.parametrize("page", sorted(name for name in PAGES if name.endswith(".md")))
def test_what_they_link_to_is_there(page: str) -> None:
    """These are links to files of the checkout. The build of the site checks the links inside the site."""
    links = {part.partition(")")[0] for part in PAGES[page]().split("](../")[1:]}

    assert links
    assert [] == [link for link in links if not (DOCS.parent / link).is_file()]
