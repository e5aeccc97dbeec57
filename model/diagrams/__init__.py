"""The state diagram: what it says, where everything of it is, and the SVG of it."""
