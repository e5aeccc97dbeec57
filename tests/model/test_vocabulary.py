"""The words for actions, and where Caffe's lines are."""

from __future__ import annotations

from dataclasses import replace

from syncedmem.model import Action, Declaration, head_machine
from syncedmem.model.exports.formats import export
from syncedmem.model.vocabulary import Cited, cited, code_of, contents_after, done_of

WORDS = {
    Action.ALLOCATE_CPU: ("HA", "allocated on the host", "undefined"),
    Action.ALLOCATE_GPU: ("DA", "allocated on the device", "undefined"),
    Action.ZERO_CPU: ("HZ", "zeroed on the host", "zero"),
    Action.ZERO_GPU: ("DZ", "zeroed on the device", "zero"),
    Action.COPY_TO_CPU: ("d2h", "copied to the host", "other side"),
    Action.COPY_TO_GPU: ("h2d", "copied to the device", "other side"),
    Action.COPY_TO_GPU_ASYNC: ("h2d*", "copied to the device", "other side"),
    Action.ADOPT_CPU: ("HE", "adopted on the host", "argument"),
    Action.ADOPT_GPU: ("DE", "adopted on the device", "argument"),
    Action.FREE_CPU: ("HF", "freed on the host", "none"),
    Action.FREE_GPU: ("DF", "freed on the device", "none"),
}


def test_every_action_has_its_words() -> None:
    assert {action: (code_of(action), done_of(action), contents_after(action)) for action in Action} == WORDS


def test_a_citation_is_the_path_and_the_lines() -> None:
    """Several lines of one file are cited one after the other; somebody's own texts are not Caffe's."""
    first = head_machine().rows[0].declared
    row = replace(first, cite="mine.cpp:3; syncedmem.hpp:12; syncedmem.cpp:138, 140-142, as of 2014")
    told = [
        Cited("include/caffe/syncedmem.hpp", 12, 12),
        Cited("src/caffe/syncedmem.cpp", 138, 138),
        Cited("src/caffe/syncedmem.cpp", 140, 142),
    ]

    assert list(cited(row)) == told
    assert not cited(replace(first, cite="mine.cpp:3"))


def test_a_machine_that_cites_other_texts_is_exported() -> None:
    """It has Caffe's names, and rows and sources of somebody else."""
    machine = head_machine()
    rows = dict.fromkeys(replace(row.declared, cite="mine.cpp:3") for row in machine.rows)
    text = str(export("json", edition=Declaration(replace(machine.edition, name="mine"), tuple(rows))))

    assert '"mine.cpp:3"' in text
    assert "src/caffe" not in text


def test_an_edition_prints_without_the_vocabulary_of_caffe() -> None:
    assert "names=" not in repr(head_machine().edition)
