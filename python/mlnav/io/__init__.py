"""Files that survive: records line by line, JSON whole or not at all."""

from mlnav.io.records import JsonlWriter, RecordError, read_jsonl, write_json, write_text
from mlnav.io.shipped import shipped_folder

__all__ = [
    "JsonlWriter",
    "RecordError",
    "read_jsonl",
    "shipped_folder",
    "write_json",
    "write_text",
]
