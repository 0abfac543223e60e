"""Files that survive, records line by line, JSON whole or not at all; processes that do not."""

from mlnav.io.records import JsonlWriter, RecordError, read_jsonl, write_json, write_text
from mlnav.io.shipped import shipped_folder
from mlnav.io.workers import end_with_parent

__all__ = [
    "JsonlWriter",
    "RecordError",
    "end_with_parent",
    "read_jsonl",
    "shipped_folder",
    "write_json",
    "write_text",
]
