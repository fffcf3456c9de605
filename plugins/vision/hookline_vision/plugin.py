"""The plugin: takes the images of a conversation, for a model that sees or one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hookline import (
    Exchange,
    Image,
    ImagePart,
    InvalidRequest,
    Message,
    Server,
    TextPart,
    Unavailable,
    hookimpl,
)
from hookline_vision.fallback import Fallback, fallback_of
from hookline_vision.pictures import Key, Pictures, image_parts, key_of
from hookline_vision.settings import VisionSettings

NAME = "vision"

PATIENCE = 0.6
"""Share of a hook's budget that reading the text of images may use up."""


class Vision:
    """Decodes images, and puts their pixels, or what can be told of them, in their place."""

    api = ">=1.0,<2"
    settings_model = VisionSettings
    after = frozenset({"knowledge", "websearch"})  # they may add images of their own
    extras = frozenset({"vision"})

    def __init__(self, settings: VisionSettings) -> None:
        self._settings = settings
        self._fallback = fallback_of(settings)
        self._server: Server
        self._pictures: Pictures

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Keeps the decoders while the server runs."""
        self._server = server
        self._pictures = Pictures(self._settings)
        warming = asyncio.create_task(self._pictures.warm_up())
        try:
            if self._fallback is not None:
                await self._fallback.load()
            yield
        finally:
            await asyncio.gather(warming, return_exceptions=True)
            await self._pictures.close()
            if self._fallback is not None:
                await self._fallback.close()

    @hookimpl
    def list_models(self, server: Server) -> Sequence[Mapping[str, Any]]:
        """What a model that cannot see is given instead."""
        try:
            card = server.engine.card
        except Unavailable:
            return []
        if card.vision or self._fallback is None:
            return []
        return [{"id": card.id, "vision_fallback": self._settings.fallback}]

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Decodes what the client sent, so that it is refused before anything costly happens."""
        parts = image_parts(exchange.messages)
        if parts:
            self._check(exchange, parts)
            exchange.state[NAME] = await self._pictures.decoded(parts)

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        """Gives every image its pixels, those too that plugins before this one added."""
        parts = image_parts(exchange.messages)
        if not parts:
            return
        images: dict[Key, Image] = exchange.state.pop(NAME, {})
        added = {place: part for place, part in parts.items() if key_of(part) not in images}
        images |= await self._pictures.decoded(added)
        taken = await self._taken(exchange, parts, images)
        exchange.messages = [_with_parts(message, taken) for message in exchange.messages]

    def _check(self, exchange: Exchange, parts: Mapping[str, ImagePart]) -> None:
        """Refuses images for a model that cannot see, too many, or in the wrong place."""
        first = next(iter(parts))
        if not self._server.engine.card.vision and self._fallback is None:
            raise InvalidRequest(
                f"The model '{exchange.model}' cannot see images, and {first} is one. Load a "
                "model with an image projector ([model] mmproj), or have images described by "
                "setting fallback in [plugin.vision].",
                param=first,
            )
        if len(parts) > (most := self._settings.max_images):
            raise InvalidRequest(
                f"This request carries {len(parts)} images, more than the {most} that max_images "
                "in [plugin.vision] allows.",
                param=list(parts)[most],
            )
        for place, message in enumerate(exchange.messages):
            if message.images and message.role != "user":
                raise InvalidRequest(
                    f"messages[{place}] has the role '{message.role}' and holds an image; only "
                    "messages of the role 'user' can.",
                    param=f"messages[{place}].content",
                )

    async def _taken(
        self, exchange: Exchange, parts: Mapping[str, ImagePart], images: Mapping[Key, Image]
    ) -> dict[Key, ImagePart | TextPart]:
        """What each image becomes: itself with its pixels, or a text."""
        if self._server.engine.card.vision or self._fallback is None:
            return {key_of(part): part.decoded(images[key_of(part)]) for part in parts.values()}
        return await self._described(exchange, self._fallback, parts, images)

    async def _described(
        self,
        exchange: Exchange,
        fallback: Fallback,
        parts: Mapping[str, ImagePart],
        images: Mapping[Key, Image],
    ) -> dict[Key, ImagePart | TextPart]:
        """The texts for images; what is missing from them is a warning of the answer."""
        end = asyncio.get_running_loop().time() + self._patience()
        places: dict[Key, str] = {}
        for place, part in parts.items():
            places.setdefault(key_of(part), place)
        taken: dict[Key, ImagePart | TextPart] = {}
        for number, (key, image) in enumerate(images.items(), 1):
            detail = f"image {number} of {len(images)}"

            def report(detail: str = detail) -> None:
                exchange.report(NAME, self._settings.fallback, detail)

            told = await fallback.describe(image, end, report)
            taken[key] = TextPart(text=told.text)
            if told.missing:
                message = f"The image in {places[key]}: {told.missing}"
                exchange.warnings.append({"plugin": NAME, "hook": "transform", "message": message})
        return taken

    def _patience(self) -> float:
        """Seconds for all images of a request: the hook must end before its budget does."""
        return PATIENCE * self._server.settings.isolation.transform_seconds


def _with_parts(message: Message, taken: Mapping[Key, ImagePart | TextPart]) -> Message:
    """The message with its images replaced."""
    if not isinstance(message.content, list) or not message.images:
        return message
    content = [
        taken[key_of(part)] if isinstance(part, ImagePart) else part for part in message.content
    ]
    return message.model_copy(update={"content": content})
