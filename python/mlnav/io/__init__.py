"""Files that survive: records line by line, JSON whole or not at all."""

from mlnav.io.records import (
    JsonlWriter,
    RecordError,
    read_jsonl,
    whole_file,
    write_json,
    write_text,
)
from mlnav.io.shipped import shipped_folder

__all__ = [
    "JsonlWriter",
    "RecordError",
    "read_jsonl",
    "shipped_folder",
    "whole_file",
    "write_json",
    "write_text",
]
