"""A file that cannot be read, and why."""

from __future__ import annotations

from typing import Literal

from hookline_knowledge.parsing.settings import ParsingSettings
from hookline_knowledge.wording import counted

Code = Literal["invalid_file", "unsupported_file"]
"""OpenAI's codes for a file that failed: something is wrong with it, or nobody reads its kind."""


class Unreadable(Exception):
    """A file that cannot be read. ``reason`` is a sentence for people that says what to do."""

    def __init__(self, reason: str, code: Code = "invalid_file") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code: Code = code


def too_large(limits: ParsingSettings) -> str:
    """The reason for a file over the limit."""
    return f"The file is larger than {limits.file_mb:,} MiB" + _see("file_mb")


def too_slow(limits: ParsingSettings) -> str:
    """The reason for a file that took too long."""
    return f"Reading the file takes more than {counted(limits.seconds, 'second')}" + _see("seconds")


def out_of_memory(limits: ParsingSettings) -> str:
    """The reason for a file that took too much memory."""
    return f"Reading the file takes more than {limits.memory_mb:,} MiB of memory" + _see(
        "memory_mb"
    )


def broke(limits: ParsingSettings, how: str) -> str:
    """The reason for a file over which its reader fell."""
    return (
        f"The process that read the file broke{how}: the file is damaged, made to do harm, or "
        f"needs more than {limits.memory_mb:,} MiB of memory" + _see("memory_mb")
    )


def too_much(one: str, most: int, setting: str) -> Unreadable:
    """A file that holds more than ``most`` of something, which ``setting`` allows."""
    return Unreadable(f"The file holds more than {counted(most, one)}" + _see(setting))


def _see(setting: str) -> str:
    return f", see {setting} in [plugin.knowledge.parsing]."
