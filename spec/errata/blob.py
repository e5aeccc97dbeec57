"""What Caffe's blob does wrong, or does and surprises: the rows of `syncedmem.spec.errata` that are about blobs."""

from __future__ import annotations

__all__ = ["BLOBS"]

_ADOPTION = "tests/runtime/blobs/test_blob_adoption.py::test_"
_ATTRIBUTES = "tests/runtime/blobs/test_blob_attributes.py::test_"
_MAKING = "tests/runtime/blobs/test_blob_making.py::test_"
_OWNERSHIP = "tests/runtime/blobs/test_blob_ownership.py::test_"
_PROTOCOLS = "tests/runtime/blobs/test_blob_protocols.py::test_"
_SHAPE = "tests/runtime/blobs/test_blob_shape.py::test_"
_SHARING = "tests/runtime/blobs/test_blob_sharing.py::test_"
_STORED = "tests/runtime/blobs/test_blob_stored.py::test_"
_TABLES = "tests/runtime/blobs/test_blob_tables.py::test_"

BLOBS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("H1; blob.cpp:156-165", "sharing leaves the capacity as it was", "growing again writes past the end (#5439)",
     "the capacity is what the memories hold, and is stored nowhere", "B46-capacity",
     f"CapacityRemembered {_SHARING}the_capacity_follows_sharing"),
    ("H2; blob.cpp:93-97, 111-115", "so does adopting a buffer of another size", "the same, in the diff too",
     "the capacity is what the memories hold", "B46-capacity",
     f"CapacityRemembered {_ADOPTION}adoption_of_another_size_brings_new_memory_and_its_capacity"),
    ("H4; blob.cpp:31-39", "extents are checked one after the other", "a shape that is refused half-way stays half-way",
     "a shape is checked as a whole before anything is done", "B56-unchanged",
     f"ShapeBeforeCheck RenewsBeforeCheck {_SHAPE}a_shape_that_is_refused_changes_nothing"),
    ("H4; blob.cpp:111-116", "in a CPU build `set_gpu_data` replaces both memories, and then fails",
     "both have lost their bytes", "what is refused has changed nothing", "B56-unchanged",
     f"RenewsBeforeCheck {_TABLES}a_copy_that_fails_leaves_shape_and_memory"),
    ("H4; blob.cpp:484-513", "a message of wrong counts is found out after the reshape", "the blob has the new shape",
     "what is refused has changed nothing", "B52-message-count",
     f"ShortMessages {_STORED}a_message_that_is_refused_changes_nothing"),
    ("H5; blob.cpp:90-117", "memory of one's own is adopted in another size",
     "what was adopted is freed with the memory",
     ("refused, as is all that lies in the data or the diff that the call gives up, whoever shares that, and what "
      "would free memory that was lent to the other part"), "B66-own-memory",
     (f"AdoptsOwnData DataAdoptsOwnDiff AdoptsOwnDiff FreesTheLender SharesWhatItFrees "
      f"{_OWNERSHIP}what_adopting_gives_up_is_not_adopted {_OWNERSHIP}a_part_that_was_lent_to_the_other_is_not_freed "
      f"{_OWNERSHIP}what_was_adopted_from_a_blob_is_not_shared_in_its_place")),
    ("H8; blob.cpp:90-117", "adopting drops what is newer on the other side", "an update is lost in silence",
     "kept, because the call says so: what is set is the newest; read first what you need", "B23-adopt-redirects",
     f"AdoptsAlone {_ADOPTION}adoption_drops_what_only_the_other_side_held"),
    ("H10; _caffe.cpp:475", "reading through pycaffe counts as writing", "everything is sent to the device again",
     "reads are reads", "B21-accessors",
     f"ReadsAsWrites {_ATTRIBUTES}reading_the_attribute_leaves_the_device_side_fresh"),
    ("H10; _caffe.cpp:236", "a view outlives the memory that it shows", "after a reshape that grows it dangles",
     ("a view on the host keeps its bytes, unless a pool has lent them again, and `blob.data` refuses to write when "
      "its blob has others; of views on the device, see blobs.md"), "B06-growth-renews",
     (f"GrowsByHalf {_ATTRIBUTES}an_array_outlives_a_reshape {_PROTOCOLS}views_keep_the_memory_and_not_the_blob "
      f"{_PROTOCOLS}a_view_of_the_simulated_device_is_of_no_use_when_its_memory_is_freed")),
    ("H11; blob.cpp:176-196, 441-462", "arithmetic goes by the head, copying by the mode", "pointers of the wrong side",
     "the same rules, with views that know their side", "B40-copy-by-mode",
     f"UpdateByMode CopiesByHead {_TABLES}copies_are_made_where_the_mode_says"),
    ("H14; blob.hpp:26", "the memories of an empty blob are null pointers", "half of the calls crash (#5571)",
     "it has memories of no bytes, to be read, copied and adopted into; what has no meaning is refused",
     "B64-no-elements",
     (f"EmptyIsNull {_MAKING}a_blob_without_a_shape_is_not_one_without_axes {_TABLES}blobs_without_a_shape_are_copied"
      f" {_STORED}what_a_message_cannot_say_is_refused {_SHAPE}kernels_are_handed_no_shape_that_there_is_not")),
    ("H15; blob.cpp:33-35", "a count is an `int`", "what is larger is fatal",
     "counts are as wide as the address space; only `gpu_shape()` is for 32 bits, and refuses more", "B47-wide-count",
     (f"ExtentsCut SizeWraps {_SHAPE}counts_are_wider_than_an_int "
      f"{_SHAPE}kernels_are_handed_no_shape_that_there_is_not")),
    ("H15; blob.cpp:52", "the extents of a message are cut to 32 bits", "another shape than was asked for",
     "they are taken as they are", "B47-wide-count", f"ExtentsCut {_SHAPE}counts_are_wider_than_an_int"),
    ("H15; blob.hpp:91-95", "the volume of a range of axes behind a zero overflows", "a count that means nothing",
     "integers do not overflow", "B11-count-axes", "CountsFromTheBack"),
    ("H16; blob.cpp:40", "memory only grows", "a large shape is kept for life (#4102)",
     "kept, until `shrink_to_fit()`", "B45-shrink",
     f"NeverShrinks Hoards {_SHAPE}shrinking_gives_back_what_is_behind_the_shape"),
    ("H19; blob.hpp:155-162", "`offset` compares the extent where it means the index",
     "negative indices read out of bounds", "they are refused; one past the end is not, because pooling needs it",
     "B62-negative-index", f"NegativeChannel {_SHAPE}an_offset_is_given_by_numbers_or_by_a_sequence"),
    ("H19; blob.hpp:191-207", "`data_at` goes by `offset`", "an element one past the end is read",
     "what is no element is refused", "B63-element-in-range",
     f"ElementBehindTheEnd {_SHAPE}elements_are_read_strictly_inside"),
    ("H19; blob.cpp:338", "`sumsq_diff` reports the head of the data", "the message is about another memory",
     "each call looks at its own memory, and every head has a norm", "B34-norm-side",
     f"NormOnHost {_TABLES}sums_are_taken_where_the_numbers_are"),
    ("H20; blob.cpp:40-44, 90-99", "growing, and adopting in another size, end sharing in silence",
     "weights stop being shared (#4883)", "kept, and documented: sharing is of the memory", "B07-growth-unshares",
     (f"GrowthTellsSharers {_ADOPTION}adoption_of_the_right_size_is_seen_by_all_sharers "
      f"{_SHAPE}what_grows_gets_new_memory_and_forgets_the_old {_SHARING}what_cannot_be_shared_is_refused")),
    ("blob.cpp:30-38", "every reshape makes the host side of the shape newer", "it is copied up again unchanged",
     "only if it changed", "B61-shape-once",
     f"ShapeSentAgain {_SHAPE}the_shape_is_copied_again_only_if_it_has_changed"),
    ("blob.cpp:442-450", "copying in GPU mode without a device is fatal", "the host side is there",
     "it copies on the host in any mode", "B40-copy-by-mode",
     f"CopiesByHead {_TABLES}without_a_device_copies_are_made_on_the_host"),
)  # fmt: skip
"""Each has its place in Caffe with the hazard if it is one, what is done there, what is wrong with that, what is right,
the requirement that says so, and what shows it: seeded bugs and tests by name."""
