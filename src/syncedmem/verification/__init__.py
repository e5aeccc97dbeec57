"""The main job: the model against what was observed of Caffe, every device against the spec, and the report."""

from .checks import (
    PARTS,
    SUBJECTS,
    make_blob_subject,
    make_buffer_subject,
    make_subject,
    verify,
    verify_model,
    verify_part,
)
from .report import document, page
from .verdicts import KINDS, DeviceVerdict, ModelVerdict, Verification

__all__ = [
    "KINDS",
    "PARTS",
    "SUBJECTS",
    "DeviceVerdict",
    "ModelVerdict",
    "Verification",
    "document",
    "make_blob_subject",
    "make_buffer_subject",
    "make_subject",
    "page",
    "verify",
    "verify_model",
    "verify_part",
]
