"""What the words and the numbers of a report of ``syncedmem verify`` mean, in a sentence each."""

from __future__ import annotations

from typing import Final

__all__ = ["GLOSSARY"]

GLOSSARY: Final[dict[str, str]] = {
    "passed": "Everything that was asked for was checked, and nothing is wrong.",
    "failed": "Something is wrong. Each failure names the requirement, and has a program that shows it.",
    "incomplete": "Nothing was found to be wrong, but a device that was asked for by its name is not here.",
    "unavailable": "The device is not here, so nothing is known of it. The reason stands beside it.",
    "not checked": "The requirement applies, but this run says nothing about it.",
    "not applicable": "The requirement is about something that the device does not have.",
    "configurations": "What a memory can be in: a head, and who owns each of the two sides.",
    "cells": "Pairs of a configuration and a call. In each the model says what happens, or that the call is refused.",
    "of them refused": "Cells in which the call is refused and nothing changes.",
    "states": "Configurations with two more facts: whether host memory is page-locked, and the mode.",
    "transitions": "Pairs of a state and a call. A device passes only if all were taken.",
    "states, minimised": "How many states are left when those that nobody can tell apart are counted once.",
    "steps in the tour": "Calls of the shortest known sequence that takes every transition.",
    "steps in the HSI suite": "Calls of sequences (harmonised state identifiers) that tell every wrong state apart.",
    "invariants": "Sentences that hold after every sequence of calls, whatever the bytes are.",
    "states of the proofs": "States of all editions together in which the table was compared with the oracle.",
    "cells of blobs": "Cells of the tables of blobs that were taken: a call of a blob in one kind of state.",
    "checks of allocators": "Checks of requirements of allocators that were made, each on each allocator and stack.",
    "walks": "Different generated sequences of calls. One that was made before is not counted again.",
    "steps": "Calls that were made. After each, everything that can be seen is compared.",
    "seconds": "How long it took. Parts that ran at the same time are added up.",
    "profile": "caffe: what Caffe does. safe: what we promise beyond it.",
}
"""Every word that a report uses for a number or a status."""
