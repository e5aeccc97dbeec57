"""What Caffe's blob does that a blob is not asked to do here, and which requirement says what it does instead."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ERRATA", "Erratum"]


class Erratum(NamedTuple):
    """One thing that is decided otherwise than in Caffe, or that is kept although it surprises.

    Attributes
    ----------
    source : str
        Where Caffe does it, with the number of the hazard if it has one.
    caffe : str
        What Caffe does.
    here : str
        What holds here.
    requirement : str
        That says so.
    """

    source: str
    caffe: str
    here: str
    requirement: str


ERRATA: tuple[Erratum, ...] = (
    Erratum("blob.cpp 156-166; H1", "Sharing leaves the capacity as it was, and growing then writes behind the buffer.",
            "The capacity is what the memories hold.", "B46-capacity"),
    Erratum("blob.cpp 93-99, 111-117; H2", "So does adopting a buffer of another size.",
            "The capacity is what the memories hold.", "B46-capacity"),
    Erratum("blob.cpp 33-36; H4", "A shape that is refused half-way stays half-way.",
            "A shape is checked as a whole before anything is done.", "B56-unchanged"),
    Erratum("blob.cpp 111-127; H4", "In a CPU build set_gpu_data replaces both memories, and then fails.",
            "What is refused has changed nothing.", "B56-unchanged"),
    Erratum("blob.cpp 484-516; H4", "A message of wrong counts is found out after the reshape.",
            "What is refused has changed nothing.", "B52-message-count"),
    Erratum("blob.cpp 90-128; H8", "Adopting drops what is newer on the other side.",
            "Kept: whoever adopts says what the numbers are.", "B23-adopt-redirects"),
    Erratum("_caffe.cpp 475; H10", "Reading through pycaffe counts as writing, so everything is sent again.",
            "Reads are reads.", "B21-accessors"),
    Erratum("_caffe.cpp 236; H10", "A view that outlives a growing reshape dangles.",
            "A view is of its memory, which lives as long; the blob has another by then.", "B06-growth-renews"),
    Erratum("blob.hpp 26; H14", "The memories of an empty blob are null, and half of the calls crash.",
            "An empty blob has memories of no bytes.", "B64-no-elements"),
    Erratum("blob.cpp 34-36; H15", "A count is an int; before da004d7c4 an extent of zero divided by zero.",
            "A count is limited by the address space; INT_MAX is asked of the profile caffe alone.", "B47-wide-count"),
    Erratum("blob.cpp 51; H15", "The extents of a BlobShape are cut to 32 bits.",
            "They are taken as they are.", "B47-wide-count"),
    Erratum("blob.hpp 93-98; H15", "The volume of a range of axes behind a zero overflows.",
            "Integers do not overflow.", "B11-count-axes"),
    Erratum("blob.cpp 42; H16", "A blob never gets smaller.",
            "Kept, and there is shrink_to_fit.", "B45-shrink"),
    Erratum("blob.hpp 155-162; H19", "offset looks at the extent where it means the index, and takes negative ones.",
            "Negative indices are refused.", "B62-negative-index"),
    Erratum("blob.hpp 183-199; H19", "An element one past the end is read.",
            "What is no element is refused.", "B63-element-in-range"),
    Erratum("blob.cpp 338; H19", "The message of sumsq_diff shows the head of the data.",
            "There is no such message: every head has a norm.", "B34-norm-side"),
    Erratum("blob.cpp 42-45, 90-106; H20", "Growing, and adopting in another size, end sharing without a word.",
            "Kept: sharing is of the memory, and whoever has it sees what happens to it.", "B07-growth-unshares"),
    Erratum("blob.cpp 28-41", "Every reshape allocates the shape's memory, and makes its host side newer.",
            "The extents are written when they are asked for, if they have changed.", "B61-shape-once"),
    Erratum("blob.cpp 443-452", "Without a device, copying in GPU mode is fatal.",
            "The host is what there is.", "B40-copy-by-mode"),
)  # fmt: skip
