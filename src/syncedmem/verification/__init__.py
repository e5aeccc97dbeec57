"""The main job: the model against what was observed of Caffe, every device against the spec, and the report."""

from .checks import (
    CHECKED,
    PARTS,
    SUBJECTS,
    make_blob_subject,
    make_subject,
    verify,
    verify_machine,
    verify_model,
    verify_part,
)
from .report import page
from .verdicts import KINDS, LEGEND, MARKS, DeviceVerdict, ModelVerdict, Verification

__all__ = [
    "CHECKED",
    "KINDS",
    "LEGEND",
    "MARKS",
    "PARTS",
    "SUBJECTS",
    "DeviceVerdict",
    "ModelVerdict",
    "Verification",
    "make_blob_subject",
    "make_subject",
    "page",
    "verify",
    "verify_machine",
    "verify_model",
    "verify_part",
]
