"""Observations of Caffe itself: an exhaustive run of its memory, and the calls that its own tests make."""

from .caffe_tests import CAFFE_TESTS, CAFFE_TESTS_FILE, CaffeTest
from .comparison import compare_model, evidence

__all__ = ["CAFFE_TESTS", "CAFFE_TESTS_FILE", "CaffeTest", "compare_model", "evidence"]
