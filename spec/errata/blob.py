"""Mistakes and surprises of Caffe's blob: the rows of `syncedmem.spec.errata` about blobs."""

from __future__ import annotations

__all__ = ["BLOBS"]

_ATTRIBUTES = "tests/runtime/blobs/test_blob_attributes.py::test_"
_MAKING = "tests/runtime/blobs/test_blob.py::test_"
_OWNERSHIP = "tests/runtime/blobs/test_blob_adoption.py::test_"
_PROTOCOLS = "tests/runtime/blobs/test_blob_attributes.py::test_"
_SHAPE = "tests/runtime/blobs/test_blob_shape.py::test_"
_STORED = "tests/runtime/blobs/test_array_files.py::test_"
_TABLES = "tests/runtime/blobs/test_blob_tables.py::test_"

BLOBS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("H1; blob.cpp:156-165", "sharing does not update the capacity", "growing again writes past the end (#5439)",
     "the capacity is computed from the memories, and not stored", "B46-capacity",
     "CapacityRemembered"),
    ("H2; blob.cpp:93-97, 111-115", "adopting a buffer of another size does not update the capacity",
     "growing again writes past the end, in the diff too", "the capacity is computed from the memories", "B46-capacity",
     "CapacityRemembered"),
    ("H4; blob.cpp:31-39", "extents are checked one after the other", "a shape that is refused half-way is half set",
     "a shape is checked as a whole before anything is done", "B56-unchanged",
     "ShapeBeforeCheck RenewsBeforeCheck"),
    ("H4; blob.cpp:111-116", "in a CPU build `set_gpu_data` replaces both memories, and then fails",
     "both have lost their bytes", "a refused call has changed nothing", "B56-unchanged",
     "RenewsBeforeCheck"),
    ("H4; blob.cpp:484-513", "a message with wrong counts is refused after the reshape", "the blob has the new shape",
     "a refused call has changed nothing", "B52-message-count",
     "ShortMessages"),
    ("H5; blob.cpp:90-117", "a blob adopts its own memory, with another size",
     "the adopted memory is freed with the old one",
     ("refused; so is memory inside the data or the diff that the call drops, whoever shares it, and a call that "
      "would free memory that the other part has adopted"), "B66-own-memory",
     (f"AdoptsOwnData DataAdoptsOwnDiff AdoptsOwnDiff FreesTheExporter SharesWhatItFrees "
      f"{_OWNERSHIP}what_was_adopted_from_a_blob_is_not_shared_in_its_place")),
    ("H8; blob.cpp:90-117", "adopting drops newer bytes of the other side", "an update is lost silently",
     "kept, because the call says which bytes are newest; first read what you need", "B23-adopt-redirects",
     "AdoptsAlone"),
    ("H10; _caffe.cpp:475", "reading through pycaffe counts as writing", "everything is copied to the device again",
     "a read is a read", "B21-accessors",
     f"ReadsAsWrites {_ATTRIBUTES}reading_the_attribute_leaves_the_device_side_fresh"),
    ("H10; _caffe.cpp:236", "a view outlives its memory", "it dangles after a reshape that grows",
     ("a view on the host keeps its bytes, unless a pool has given them to a new owner, and `blob.data` refuses writes "
      "when its blob has another memory; for views on the device see blobs.md"), "B06-growth-renews",
     (f"GrowsByHalf {_ATTRIBUTES}an_array_outlives_a_reshape {_PROTOCOLS}views_keep_the_memory_and_not_the_blob "
      f"{_PROTOCOLS}a_view_of_the_simulated_device_is_of_no_use_when_its_memory_is_freed")),
    ("H11; blob.cpp:176-196, 441-462", "arithmetic depends on the head, copying on the mode",
     "pointers of the wrong side", "the same rules, with views that know their side", "B40-copy-by-mode",
     f"UpdateByMode CopiesByHead {_TABLES}copies_are_made_where_the_mode_says"),
    ("H14; blob.hpp:26", "the memories of an empty blob are null pointers", "half of the calls crash (#5571)",
     "it has memories of zero bytes, which can be read, copied and adopted into; calls without a meaning are refused",
     "B64-no-elements",
     (f"EmptyIsNull {_MAKING}a_blob_without_a_shape_is_not_one_without_axes"
      f" {_STORED}what_a_message_cannot_say_is_refused {_SHAPE}kernels_are_handed_no_shape_that_there_is_not")),
    ("H15; blob.cpp:33-35", "a count is an `int`", "a larger one ends the process",
     "counts are as wide as the address space; only `gpu_shape()` has 32 bits, and refuses more", "B47-wide-count",
     f"ExtentsCut SizeWraps {_SHAPE}kernels_are_handed_no_shape_that_there_is_not"),
    ("H15; blob.cpp:52", "the extents of a message are cut to 32 bits", "the blob gets another shape",
     "they are not cut", "B47-wide-count", "ExtentsCut"),
    ("H15; blob.hpp:91-95", "the volume of axes after an extent of zero overflows", "a count that means nothing",
     "integers do not overflow", "B11-count-axes", "CountsFromTheBack"),
    ("H16; blob.cpp:40", "memory only grows", "the memory of a large shape is never freed (#4102)",
     "kept until `shrink_to_fit()`", "B45-shrink",
     "NeverShrinks Hoards"),
    ("H19; blob.hpp:155-162", "`offset` checks the extent in place of the index",
     "negative indices read out of bounds", "they are refused; one past the end is not, because pooling needs it",
     "B62-negative-index", "NegativeChannel"),
    ("H19; blob.hpp:191-207", "`data_at` uses `offset`", "an element one past the end is read",
     "an index past the last element is refused", "B63-element-in-range",
     "ElementBehindTheEnd"),
    ("H19; blob.cpp:338", "`sumsq_diff` reports the head of the data", "the message is about another memory",
     "each call uses its own memory, and every head has a norm", "B34-norm-side",
     f"NormOnHost {_TABLES}sums_are_taken_where_the_numbers_are"),
    ("H20; blob.cpp:40-44, 90-99", "growing, and adopting in another size, end sharing silently",
     "weights stop being shared (#4883)", "kept, and documented: the memory is shared", "B07-growth-unshares",
     "GrowthTellsSharers"),
    ("blob.cpp:27-30", "every shape has memory for its extents at once, page-locked in GPU mode",
     "a blob that nobody uses allocates", "they have memory when they are requested on the device", "B67-shape-lazy",
     "ShapeAllocatedAtOnce"),
    ("blob.cpp:30-38", "every reshape makes the host side of the shape newer", "the unchanged shape is copied again",
     "it is copied only if it changed", "B61-shape-once",
     "ShapeSentAgain"),
    ("blob.cpp:442-450", "copying in GPU mode without a device is fatal", "the host side could be copied",
     "it copies on the host in any mode", "B40-copy-by-mode",
     "CopiesByHead"),
)  # fmt: skip
"""Each row has its place in Caffe, with the hazard if it is one, what Caffe does there, what is wrong with it, what is
right, the requirement that says so, and its evidence: names of seeded bugs and tests."""
