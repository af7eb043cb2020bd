"""The old names of what `records` holds now."""

from .records import changed_file, describe_file, describe_files, file_hash

__all__ = ["changed_file", "describe_file", "describe_files", "file_hash"]
