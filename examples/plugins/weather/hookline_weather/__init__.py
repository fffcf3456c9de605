"""Tells the model what the weather is like, from a local file or from other plugins."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from hookline import Exchange, InvalidRequest, Server, hookimpl, hookspec, with_system_text


class WeatherSettings(BaseModel):
    """``[plugin.weather]``"""

    model_config = ConfigDict(extra="forbid")

    file: Path = Field(Path("weather.json"), description="A JSON object: place to report.")
    place: str = Field("here", description="Whose weather is told when a request names no place.")


class WeatherFields(BaseModel):
    """What a request can ask for."""

    weather: bool | str = Field(False, description="Tell the model the weather: true, or a place.")


class WeatherHooks:
    """What other plugins can implement."""

    @hookspec
    def weather_report(self, place: str) -> str | None:
        """What the weather is like at a place, in a few words, or None."""


class Weather:
    """The plugin."""

    settings_model = WeatherSettings
    request_fields = WeatherFields
    hookspecs = WeatherHooks

    def __init__(self, settings: WeatherSettings) -> None:
        self._settings = settings
        self._server: Server | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Keeps the server, to ask other plugins."""
        self._server = server
        yield

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        """Adds the report to the system message. Refuses a place that nobody knows."""
        asked = exchange.fields(WeatherFields).weather
        if not asked:
            return
        place = self._settings.place if asked is True else str(asked)
        report = self._from_others(place) or await asyncio.to_thread(self._from_file, place)
        if report is None:
            raise InvalidRequest(f"There is no weather report for '{place}'.", param="weather")
        text = f"The weather at {place} now: {report}."
        exchange.messages = with_system_text(exchange.messages, text)

    def _from_others(self, place: str) -> str | None:
        assert self._server is not None, "the server enters lifespan before it takes requests"
        answers = self._server.answers("weather_report", place=place)
        return str(answers[0]) if answers else None

    def _from_file(self, place: str) -> str | None:
        reports = json.loads(self._settings.file.read_text(encoding="utf-8"))
        report = reports.get(place)
        return None if report is None else str(report)
