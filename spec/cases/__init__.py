"""Cases: lists of steps that the declared machine leads to; what they must do is the oracle's alone."""
