"""The machine in other formats.  Each format is a small module and is computed from the declaration."""
