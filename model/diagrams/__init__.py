"""The state diagram: its text, the positions of its parts, and its SVG."""
