"""Makes the Python code blocks of README.md and docs/*.md run as tests: `make docs`."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"]).pytest()

pytest_plugins = ["explorer_fixtures", "fault_table", "fuzz_table", "memory_fixtures"]
