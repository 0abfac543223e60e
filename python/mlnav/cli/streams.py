"""Standard output and error that take every text, whatever their encoding."""

from __future__ import annotations

import codecs
import io
import sys

# What our texts and Rich's hold beyond ASCII, as a typewriter has it. All else becomes "?".
_PLAIN = {
    "°": "deg", "±": "+-", "×": "x", "·": "*", "µ": "u", "μ": "u", "²": "^2", "³": "^3",
    "−": "-", "–": "-", "—": "-", "…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=",
    "≈": "~", "•": "*", "‘": "'", "’": "'", "“": '"', "”": '"',
    "─": "-", "━": "-", "│": "|", "┃": "|", "╸": "-", "╺": "-",
}  # fmt: skip


def _spelt_plainly(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    lost = fault.object[fault.start : fault.end]
    return "".join(_PLAIN.get(letter, "?") for letter in lost), fault.end


def take_every_text() -> None:
    """Let standard output and error spell plainly what their encoding lacks.

    Without it a degree sign ends a command where the locale is C, or the encoding is ASCII or
    Latin-1.
    """
    codecs.register_error("mlnav.plain", _spelt_plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="mlnav.plain")
