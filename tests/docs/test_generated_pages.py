"""The pages that are generated from the spec."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from generated_pages import (
    COMBINATIONS,
    PAGES,
    PARTS,
    UNREACHABLE,
    blob_table,
    committed_sentence,
    errata_page,
    filled,
    main,
    policy_table,
    reached,
    refusal_table,
    requirements_page,
    stale,
    suite_table,
    table,
    why_unreachable,
)

from syncedmem.model import EDITIONS, caffe
from syncedmem.spec import REQUIREMENTS, Policy
from syncedmem.spec.errata import ERRATA
from syncedmem.spec.vectors import ALL_SUITES
from syncedmem.spec.vectors.expected import OWN_BUFFER

DOCS = Path(__file__).parents[2] / "docs"


def test_they_are_up_to_date() -> None:
    assert [] == stale(DOCS)


def test_what_is_not_up_to_date_is_said_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole pages and parts of pages are generated. The text around a part stays as it is."""
    (tmp_path / "errata.md").write_text("old", encoding="utf-8")
    for page, parts in PARTS.items():
        made = "".join(f"<!-- made: {name} -->\n\nold\n\n<!-- end -->\n\nby hand\n" for name in parts)
        (tmp_path / page).write_text(f"by hand\n{made}", encoding="utf-8")

    assert 1 == main(["--check"], tmp_path)
    said = capsys.readouterr().err
    assert all(name in said for name in (*PAGES, *PARTS))
    assert "old" == (tmp_path / "errata.md").read_text(encoding="utf-8")
    assert (0, 0) == (main([], tmp_path), main(["--check"], tmp_path))
    assert errata_page() == (tmp_path / "errata.md").read_text(encoding="utf-8")
    for page, parts in PARTS.items():
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert 1 + len(parts) == text.count("by hand\n")
        assert all(f"\n\n{make()}\n\n" in text for make in parts.values())
        assert "old" not in text.splitlines()


@pytest.mark.parametrize(("text", "there"), [("", "none"), ("<!-- made: other -->\n\n\n\n<!-- end -->", "other")])
def test_a_part_that_is_wanted_and_not_there_is_an_error(text: str, there: str) -> None:
    with pytest.raises(ValueError, match=f"parts some are needed, and the page has {there}"):
        filled(text, {"some": str})


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


def test_the_page_of_configurations_says_how_many_combinations_there_are() -> None:
    text = (DOCS / "configurations.md").read_text(encoding="utf-8")

    assert f"make {len(COMBINATIONS)} combinations" in text


def test_every_suite_and_refusal_is_in_its_table() -> None:
    manifest = json.loads((DOCS.parent / "vectors" / "manifest.json").read_text(encoding="utf-8"))

    assert len(ALL_SUITES) + 2 == len(suite_table().splitlines())
    assert all(f"{it['vectors']:,} / {it['steps']:,}" in suite_table() for it in manifest["suites"])
    assert all(f"| `{refusal}` |" in refusal_table() for refusal in caffe.REFUSALS)
    assert f"| `{OWN_BUFFER}` |" in refusal_table()
    assert "`caffe/aliases`, `caffe/modes` and `cpu_only/tour`" in committed_sentence()


def test_every_erratum_of_blobs_leads_to_its_requirement() -> None:
    rows = blob_table().splitlines()[2:]

    assert len(rows) == sum(bool(it.requirement) for it in ERRATA)
    assert "| [B46-capacity](requirements.md) |" in rows[0]
    assert all(f"**{it.requirement}**" in requirements_page() for it in ERRATA if it.requirement)


def test_every_requirement_is_there_with_a_mutant_that_breaks_it() -> None:
    rows = [line for line in requirements_page().splitlines() if line.startswith("| <a id=")]

    assert len(REQUIREMENTS) == len(rows)
    assert all(line.rstrip(" |").endswith(".py)") for line in rows)


def test_every_erratum_is_there() -> None:
    page = errata_page()

    assert all(f"| {it.place} | {it.says}: ".replace("||", "\\|\\|") in page for it in ERRATA)


@pytest.mark.parametrize("page", sorted(name for name in PAGES if name.endswith(".md")))
def test_what_they_link_to_is_there(page: str) -> None:
    """These are links to files of the checkout. The build of the site checks the links inside the site."""
    links = {part.partition(")")[0] for part in PAGES[page]().split("](../")[1:]}

    assert links
    assert [] == [link for link in links if not (DOCS.parent / link).is_file()]


def test_bars_in_cells_are_no_borders() -> None:
    assert "| a |\n| --- |\n| x \\| y |" == table(("a",), [("x | y",)])
