"""Subjects: adapters that do steps on real memories, and say what is seen."""
