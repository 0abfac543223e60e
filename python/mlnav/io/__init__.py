"""Files that survive: records line by line, JSON whole or not at all."""

from mlnav.io.records import JsonlWriter, RecordError, read_jsonl, write_json

__all__ = ["JsonlWriter", "RecordError", "read_jsonl", "write_json"]
