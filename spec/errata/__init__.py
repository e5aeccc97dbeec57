"""What is wrong in the texts this project was built from, and in the originals themselves."""

from .registry import ERRATA, SOURCES, Erratum

__all__ = ["ERRATA", "SOURCES", "Erratum"]
