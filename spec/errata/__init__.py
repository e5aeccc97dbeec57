"""Mistakes in the texts from which this project was built, and in the originals themselves."""

from .registry import ERRATA, SOURCES, Erratum

__all__ = ["ERRATA", "SOURCES", "Erratum"]
