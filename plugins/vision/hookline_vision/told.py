"""What is told about an image to a model that cannot see it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from hookline import Image, MissingExtra

UNREAD = "[An image that cannot be shown here, nor read by a machine.]"


@dataclass(frozen=True, slots=True)
class Told:
    """The text that takes an image's place in the prompt, and for the client, as a sentence, what
    of the image is ``missing`` from it."""

    text: str
    missing: str = ""


class Describer(Protocol):
    """Knows one way to say what is in an image. Called for one image at a time."""

    async def load(self) -> None:
        """Loads what has to be there before the server starts."""
        ...

    async def describe(self, image: Image, seconds: float) -> Told:
        """What is said about an image, as far as it is known after so many seconds."""
        ...

    async def close(self) -> None:
        """Ends what was started."""
        ...


def require(module: str, what: str, extra: str) -> None:
    """Raises MissingExtra where a library is not installed."""
    if find_spec(module) is None:
        raise MissingExtra(what, extra, module)
