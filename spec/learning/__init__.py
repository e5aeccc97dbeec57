"""Learning: the machine of a port is found out from outside, by calls alone, and compared with the declared machine.

``answers`` says what is seen of a call, and ``mealy`` what a machine of such answers is.  ``declared`` makes one of the
declaration.  ``asking`` asks a port, and ``learner`` learns its machine; AALpy has the algorithm.  ``comparison``
compares the two machines cell by cell.  ``report`` and ``drawing`` show the result.
"""
