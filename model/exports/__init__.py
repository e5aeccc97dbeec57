"""The machine in other people's formats, each a small module, all computed from the declaration."""
