"""Observations of Caffe itself: an exhaustive run of its memory, its own tests, and what the kit says of it."""

from .caffe_port import (
    CAFFE_BLOBS_EXCEPT,
    CAFFE_BLOBS_VIOLATE,
    CAFFE_LIBRARIES,
    CAFFE_VIOLATES,
)
from .caffe_tests import CAFFE_TESTS, CAFFE_TESTS_FILE, CaffeTest
from .comparison import compare_model, evidence

__all__ = [
    "CAFFE_BLOBS_EXCEPT",
    "CAFFE_BLOBS_VIOLATE",
    "CAFFE_LIBRARIES",
    "CAFFE_TESTS",
    "CAFFE_TESTS_FILE",
    "CAFFE_VIOLATES",
    "CaffeTest",
    "compare_model",
    "evidence",
]
