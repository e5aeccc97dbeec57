"""The parts that all kits share: the subject, the call log, reproducers, the shrinker, findings and reports."""
