"""Says with each answer how long it takes to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hookline import Delta, Exchange, hookimpl

NAME = "reading-time"


class ReadingTimeSettings(BaseModel):
    """``[plugin.reading-time]``"""

    model_config = ConfigDict(extra="forbid")

    words_per_minute: int = Field(230, ge=1, description="How fast people read.")


class WordCount:
    """The stage of one choice: passes everything on and counts the words of the answer."""

    def __init__(self) -> None:
        self.words = 0
        self._in_word = False

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Counts the beginnings of words, also where a word comes in several deltas."""
        if delta.channel == "content":
            for character in delta.text:
                self.words += not character.isspace() and not self._in_word
                self._in_word = not character.isspace()
        return [delta]

    def finish(self) -> Iterable[Delta]:
        """Holds nothing back."""
        return []


class ReadingTime:
    """The plugin."""

    settings_model = ReadingTimeSettings

    def __init__(self, settings: ReadingTimeSettings) -> None:
        self._words_per_minute = settings.words_per_minute

    @hookimpl
    def stage(self, exchange: Exchange) -> WordCount:
        """One count a choice, kept with the request."""
        count = WordCount()
        exchange.state.setdefault(NAME, []).append(count)
        return count

    @hookimpl
    def closing_fields(self, exchange: Exchange) -> Mapping[str, Any]:
        """The words of all choices, and the time they take."""
        words = sum(count.words for count in exchange.state.get(NAME, ()))
        seconds = round(words * 60 / self._words_per_minute, 1)
        return {"reading_time": {"words": words, "seconds": seconds}}
