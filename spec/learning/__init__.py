"""Learning: the machine of a port is found out from outside, by calls alone, and compared with the declared machine.

``answers`` says what is seen of a call.  ``asking`` asks a port, and ``learner`` learns its machine; AALpy has the
algorithm.  ``comparison`` compares it with the declared one cell by cell.  ``report`` and ``drawing`` show the result.
"""
