"""From the image parts of a conversation to pixels."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from hookline import Image, ImagePart, ImageUrl, InvalidRequest, Message
from hookline_vision.cache import Cache
from hookline_vision.data_url import DataUrl, parse
from hookline_vision.decoders import Decoders, Limits
from hookline_vision.refusal import Refused
from hookline_vision.settings import VisionSettings

MB = 1_000_000

Key = tuple[str, str | None]
"""What makes an image: its URL, and the detail that is asked for."""


def key_of(part: ImagePart) -> Key:
    """By this a part is known again, also in a copy of its message."""
    return part.image_url.url, part.image_url.detail


def image_parts(messages: Sequence[Message]) -> dict[str, ImagePart]:
    """Every image of a conversation by its place, such as ``messages[2].content[1]``."""
    return {
        f"messages[{place}].content[{index}]": part
        for place, message in enumerate(messages)
        if isinstance(message.content, list)
        for index, part in enumerate(message.content)
        if isinstance(part, ImagePart)
    }


class Pictures:
    """Decodes images, each only once while the cache remembers it. One event loop only."""

    def __init__(self, settings: VisionSettings) -> None:
        self._settings = settings
        limits = Limits(
            settings.seconds, int(settings.max_megapixels * MB), settings.memory_mb * 2**20
        )
        self._decoders = Decoders(limits, settings.decoders)
        self._cache = Cache[Image](int(settings.cache_mb * MB))

    async def decoded(self, parts: Mapping[str, ImagePart]) -> dict[Key, Image]:
        """The pixels of images by their key. Raises InvalidRequest, which names the place of the
        first that cannot be used."""
        images = await asyncio.gather(*(self._decode(place, part) for place, part in parts.items()))
        return {key_of(part): image for part, image in zip(parts.values(), images, strict=True)}

    async def warm_up(self) -> None:
        """Makes the first image as quick as the others."""
        await self._decoders.warm_up()

    async def close(self) -> None:
        """Stops the decoders."""
        await self._decoders.close()

    async def _decode(self, place: str, part: ImagePart) -> Image:
        try:
            return await self._pixels(part.image_url)
        except Refused as reason:
            raise InvalidRequest(
                f"The image in {place} cannot be used: {reason}", param=place
            ) from reason

    async def _pixels(self, image_url: ImageUrl) -> Image:
        side = self._settings.low_side if image_url.detail == "low" else self._settings.max_side
        key = (image_url.url, side)
        if (image := self._cache.get(key)) is None:
            url = self._acceptable(image_url.url)
            image = await self._decoders.decode(url.text(), url.format, side)
            self._cache.put(key, image, len(image.rgb) + len(image_url.url))
        return image

    def _acceptable(self, address: str) -> DataUrl:
        """A data URL that is not too long. Raises Refused."""
        url, most = parse(address), self._settings.max_image_mb
        if url.size > most * MB:
            raise Refused(
                f"it has {url.size / MB:.1f} megabytes, more than the {most:g} that are read. "
                "Send a smaller one."
            )
        return url
