"""The record: steps, what is seen after each, what must be seen, and the one comparison of the two.

A case is a list of steps.  A subject turns each into what is seen (`Observation`), the oracle into what must be
(`World.after`), and `Comparison` names the requirement that the first difference breaks.
"""
