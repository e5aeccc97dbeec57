"""The kit: runs cases on a subject, compares, makes what fails as short as possible, and reports it."""
