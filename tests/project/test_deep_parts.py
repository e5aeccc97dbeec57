"""The table of `make deep` names every file that has deep tests, once, and every target that it names is there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from deep import PARTS

ROOT = Path(__file__).parents[2]
FILES = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
MARKED = [
    name for name in FILES if "pytest.mark.deep" in (ROOT / name).read_text(encoding="utf-8") and name != __name__
]
NAMED = [name for part in PARTS.values() for name in part.tests]


def test_every_file_with_deep_tests_belongs_to_a_part() -> None:
    assert len(MARKED) > 50
    assert [] == [name for name in MARKED if not any(name == it or name.startswith(f"{it}/") for it in NAMED)]


def test_no_part_names_what_another_one_names_or_what_is_not_there() -> None:
    assert [] == [name for name, times in Counter(NAMED).items() if times > 1 or not (ROOT / name).exists()]


def test_what_a_part_reads_is_there() -> None:
    assert [] == [name for part in PARTS.values() for name in part.reads if not (ROOT / name).exists()]


def test_every_target_of_a_part_is_in_the_makefile() -> None:
    rules = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {part.target for part in PARTS.values()} <= {*rules}
