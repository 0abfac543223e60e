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
from mlnav.io.strict_yaml import flag_for_number, read_yaml, validation_faults

__all__ = [
    "JsonlWriter",
    "RecordError",
    "flag_for_number",
    "read_jsonl",
    "read_yaml",
    "shipped_folder",
    "validation_faults",
    "whole_file",
    "write_json",
    "write_text",
]
