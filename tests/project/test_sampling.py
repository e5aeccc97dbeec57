"""Samples of long families of tests."""

from __future__ import annotations

from typing import Any, cast

import pytest
from sampling import sampled

NAMES = [f"bug {number}" for number in range(200)]


class Config:
    """The options of a run."""

    def __init__(self, seed: int | None, *, everyone: bool = False) -> None:
        self._options: dict[str, object] = {"--hypothesis-seed": seed, "--every-suite": everyone}

    def getoption(self, name: str) -> object:
        return self._options[name]


def sample(seed: int | None, of: int, names: list[str] = NAMES, *, everyone: bool = False) -> list[str]:
    return sampled(cast("Any", Config(seed, everyone=everyone)), ((name, name) for name in names), of=of)


def test_all_are_taken_on_request() -> None:
    assert sample(3, 24, everyone=True) == NAMES


@pytest.mark.parametrize("of", [2, 3, 24])
def test_every_seed_takes_its_share_and_after_some_seeds_all_were_taken(of: int) -> None:
    samples = [sample(seed, of) for seed in range(12 * of)]

    assert samples[0] == sample(None, of)
    assert 0.8 / of < sum(map(len, samples)) / len(samples) / len(NAMES) < 1.2 / of
    assert {*NAMES} == {name for it in samples for name in it}


def test_a_sample_is_never_empty() -> None:
    """A family without a test would be skipped, and nobody would see it."""
    assert all(len(sample(seed, 1000, ["one", "other"])) == 1 for seed in range(20))
