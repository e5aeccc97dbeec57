"""The native driver: the fuzzer in C, for targets that are C functions.

``driver.c`` takes random steps from one thread or from several, and ``oracle.h`` judges them.  ``building`` compiles
them when they are first used, and also compiles targets that are sources.  ``running`` runs the driver in processes of
its own, and reads their journal.  ``sanitizers`` reads the report of a sanitizer.
"""
