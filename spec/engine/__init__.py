"""What every kit needs, once: the subject, the call log, reproducers, the shrinker, findings and reports."""
