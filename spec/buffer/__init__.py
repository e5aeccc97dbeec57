"""The kit for buffers: a check for each requirement, and the allocators that the checks look through."""

from .kit import buffer_requirements_for, check_buffer, check_buffers

__all__ = ["buffer_requirements_for", "check_buffer", "check_buffers"]
