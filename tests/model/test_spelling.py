"""Text that the model prints can be pasted back into Python."""

from __future__ import annotations

import enum
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import syncedmem.model
from syncedmem.model import caffe, moves, states

MODULES = [import_module(found.name) for found in pkgutil.walk_packages(syncedmem.model.__path__, "syncedmem.model.")]
NAMES: dict[str, Any] = {name: value for module in MODULES for name, value in vars(module).items()}
ENUMERATIONS = sorted(
    {
        value
        for value in NAMES.values()
        if isinstance(value, enum.EnumMeta) and value.__module__.startswith("syncedmem")
    },
    key=lambda name: name.__name__,
)
OPEN: list[Any] = [
    *caffe.CAFFE.rows,
    *caffe.CAFFE.heads.values(),
    *caffe.CAFFE.calls.values(),
    *caffe.CAFFE.facts.values(),
    *caffe.CAFFE.actions.values(),
    *caffe.CAFFE.settings.values(),
    *moves.Stepper(caffe.CAFFE).inputs(),
    *states.space(caffe.CAFFE).steps,
    *states.matrix(caffe.CAFFE),
]
OPENED = NAMES | vars(caffe) | vars(states) | vars(moves)


@pytest.mark.parametrize("kind", [enumeration for enumeration in ENUMERATIONS if len(enumeration)])
def test_a_member_prints_as_its_name(kind: enum.EnumMeta) -> None:
    members: list[Any] = list(kind)

    assert members
    assert [f"{kind.__name__}.{member.name}" for member in members] == [repr(member) for member in members]


def test_words_rows_and_states_of_machines_print_as_python() -> None:
    assert OPEN == [eval(repr(machine), OPENED) for machine in OPEN]  # noqa: S307 -- our own
    assert "Row('cpu_data', 'UNINITIALIZED', 'HEAD_AT_CPU', do=('allocate_cpu', 'zero_cpu'))" == repr(
        caffe.CAFFE.rows[0]
    ).replace(f", cite={caffe.CAFFE.rows[0].cite!r}", "")
    assert "<Machine caffe: 4 heads, 8 calls, 36 rows>" == repr(caffe.CAFFE)
