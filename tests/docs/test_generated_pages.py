"""The pages that are generated from the spec."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from generated_pages import PAGES, policy_table, stale

from syncedmem.spec import Policy

DOCS = Path(__file__).parents[2] / "docs"


def test_they_are_up_to_date() -> None:
    assert [] == stale(DOCS)


def test_every_field_of_a_policy_is_told() -> None:
    names = [line.split("`")[1] for line in policy_table().splitlines()[2:]]

    assert [field.name for field in fields(Policy)] == names


@pytest.mark.parametrize("page", sorted(name for name in PAGES if name.endswith(".md") and name != "machine.md"))
def test_what_they_link_to_is_there(page: str) -> None:
    """These are links to files of the checkout. The build of the site checks the links inside the site."""
    links = {part.partition(")")[0] for part in PAGES[page]().split("](../")[1:]}

    assert links
    assert [] == [link for link in links if not (DOCS.parent / link).is_file()]
