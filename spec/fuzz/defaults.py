"""The defaults of a run of the fuzzer.

The command line repeats them, so that its help needs no import of the spec; a test compares the two.
"""

__all__ = ["HANG", "SECONDS", "SEED", "STEPS", "THREADS"]

SEED, STEPS, SECONDS, THREADS, HANG = 0, 2_000_000, 45.0, 1, 5.0
