"""An allocator that promises everything that can be promised."""

ALL = {
    "alignment": "64",
    "zero_size": "null",
    "wrong_size": "detect",
    "foreign_free": "detect",
    "double_free": "detect",
    "stream_ordered": "yes",
    "thread_safe": "yes",
}
