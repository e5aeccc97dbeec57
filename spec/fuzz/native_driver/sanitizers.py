"""The report of a sanitizer, without what nobody reads."""

from __future__ import annotations

import re

__all__ = ["STATUS", "options_of", "trimmed"]

STATUS = 66
"""The exit status of a process that a sanitizer ended."""

_COMMON = f"exitcode={STATUS}:halt_on_error=1:allocator_may_return_null=1:abort_on_error=0:color=never:print_summary=1"


def options_of(reports: str) -> dict[str, str]:
    """The environment of a process with a sanitizer, which writes to files whose names begin so."""
    common = f"{_COMMON}:log_path={reports}"
    return {
        "TSAN_OPTIONS": f"{common}:report_signal_unsafe=0:history_size=4",
        "ASAN_OPTIONS": f"{common}:detect_leaks=0",
    }


_BEGIN = re.compile(r"(?:WARNING|ERROR): (\w+Sanitizer: .*)")
_SUMMARY = re.compile(r"SUMMARY: (\w+Sanitizer: .*)")
_FRAME = re.compile(r"\s*#(\d+) ")
_NOISE = re.compile(r"^=+\d*=*$|^==\d+==|\(BuildId: \w+\)|\((?:\S+\+)?0x[0-9a-f]+\)|\b0x[0-9a-f]+ in ")
_END = re.compile(r"Shadow bytes around|^HINT:|^\s*Thread T\d+ .*created by|Register values:")
_MOST_FRAMES, _MOST_LINES = 5, 40


def trimmed(output: str) -> tuple[str, str]:
    """The sentence and the stacks of the first report in an output; both are empty if there is none."""
    found = _BEGIN.search(output)
    if found is None:
        return "", ""
    text, *rest = output[found.start(1) :].splitlines()
    summary = _SUMMARY.search(output)
    lines: list[str] = [_clean(text)]
    for line in rest:
        frame = _FRAME.match(line)
        if _END.search(line) or line.startswith("SUMMARY:") or len(lines) == _MOST_LINES:
            break
        if _clean(line) and not (frame and int(frame[1]) >= _MOST_FRAMES):
            lines.append(_clean(line))
    return _clean(summary[1] if summary else text), "\n".join(lines)


def _clean(line: str) -> str:
    return _NOISE.sub("", line).rstrip()
