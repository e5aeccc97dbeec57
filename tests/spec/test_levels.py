"""Requirements as data: their levels, and which of them are judged."""

from __future__ import annotations

from itertools import pairwise

import pytest

from syncedmem.spec import REQUIREMENTS
from syncedmem.spec.requirements import LEVELS, PROFILES, Profile, applicable, requirements_of
from syncedmem.spec.requirements.blob import BLOB_LEVELS
from syncedmem.spec.requirements.memory import MEMORY_LEVELS


def test_every_requirement_of_memories_and_blobs_has_a_level() -> None:
    numbers = {name.partition("-")[0] for name in requirements_of("memory", "blob")}

    assert numbers == {*MEMORY_LEVELS, *BLOB_LEVELS}
    assert set(LEVELS) == {*MEMORY_LEVELS.values()}


@pytest.mark.parametrize("profile", PROFILES)
def test_each_level_judges_what_the_lower_ones_judge_and_more(profile: Profile) -> None:
    judged = [applicable("memory", profile, {"device"}, level) for level in LEVELS]

    assert all(set(lower) <= set(higher) for lower, higher in pairwise(judged))
    assert judged[-1] == applicable("memory", profile, {"device"})
    assert {REQUIREMENTS[name].level for name in judged[0]} == {"L0"}
