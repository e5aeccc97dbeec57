"""The native driver: the fuzzer in C, for targets that are C functions.

``driver.c`` takes random steps from one thread or from several, and ``oracle.h`` judges them.  ``building`` compiles
them when they are first used, and also compiles targets that are sources.  ``running`` has the
worker run the driver, each time in a process of its own, and reads its journal.
"""
