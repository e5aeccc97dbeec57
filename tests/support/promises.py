"""All promises that an allocator can make."""

ALL = {
    "alignment": "64",
    "zero_size": "null",
    "wrong_size": "detect",
    "foreign_free": "detect",
    "double_free": "detect",
    "stream_ordered": "yes",
    "thread_safe": "yes",
}
