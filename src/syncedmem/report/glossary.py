"""What the numbers and the words of a report mean, in one sentence or two each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["GLOSSARY", "MARKS", "glossary_of"]

MARKS: Mapping[str, str] = {"passed": "✓", "failed": "✗", "not checked": "–", "not applicable": "·"}
"""What stands for the status of a requirement in a report."""

GLOSSARY: Final[dict[str, str]] = {
    # --- the verdict
    "passed": "Everything that was asked for was checked, and nothing is wrong.",
    "failed": "Something is wrong. Each failure has the requirement that is broken and, if one can show it, a program.",
    "incomplete": "Nothing was found to be wrong, but something that was asked for was not checked.",
    "not checked": "It applies here, but this run says nothing about it. The reason stands beside it.",
    "not applicable": "It is about something that this subject does not have or does not claim, such as a device.",
    # --- the model
    "configurations": "What a memory can be in: a head, and who owns each of the two sides.",
    "cells": "Pairs of a configuration and a call. In each the model says what happens, or that the call is refused.",
    "refusals": "Cells in which the call is refused and nothing changes.",
    "states": "Configurations with two more facts: whether host memory is page-locked, and the mode.",
    "transitions": "Pairs of a state and a call. With 48 of 48 all were taken; if one is missing, the run fails.",
    "minimised states": "How many states are left when states that nobody can tell apart are counted once.",
    "tour steps": "Calls of the shortest known sequence that takes every transition.",
    "HSI steps": "Calls of a suite of sequences (harmonised state identifiers) that tells every wrong state apart.",
    "invariants": "Sentences that hold in every state, and were proved.",
    "proved states": "States that the proofs went through, over all editions of the machine.",
    # --- a kit
    "cells of blobs": "Cells of the tables of blobs that were taken: calls of a blob, each in one kind of state.",
    "checks of buffers": "Checks of requirements of buffers that were made, each on a fresh buffer.",
    "checks of allocators": "Checks of requirements of allocators that were made: each on each allocator and stack.",
    "walks": "Different generated sequences of calls. A sequence that was made before is not counted again.",
    "steps": "Calls that were made, in all sequences together. After each, everything that can be seen is compared.",
    "seconds": "How long it took. Parts that ran at the same time are added up.",
    "requirements": "How many of the requirements that are judged at this level are kept.",
    "covered": "How many transitions of memories, or cells of blobs, were taken, of all that the edition has.",
    # --- the fuzzer
    "operations": "Calls that were made of what was tested; for an allocator, requests, frees and others.",
    "operations a second": "The speed of a generator, with the work of comparing.",
    # --- several seeds
    "processes": "How many seeds a machine took at a time, each in a process of its own.",
    "seeds": "How many seeds a machine took.",
    # --- the fuzzer, again
    "checked N times": "How often a requirement was compared. A requirement that was never compared is not checked.",
}
"""Every word that a report uses for a number or a status.  `Numbers` refuses a number that is not explained here."""


def glossary_of(terms: Collection[str]) -> dict[str, str]:
    """The entries of these terms, in the order of the glossary."""
    return {term: meaning for term, meaning in GLOSSARY.items() if term in terms}
