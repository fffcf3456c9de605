"""An image as engines look at it: plain pixels, with a name for its content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Image:
    """A picture of ``width`` times ``height`` pixels.

    ``rgb`` is three bytes a pixel, row by row from the top. ``digest`` is the same for the same
    picture, in any request, and for no other. Raises ValueError where ``rgb`` has another length.
    """

    width: int
    height: int
    rgb: bytes = field(repr=False, compare=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        if min(self.width, self.height) < 1 or len(self.rgb) != self.width * self.height * 3:
            raise ValueError(
                f"{self.width} x {self.height} pixels need {self.width * self.height * 3} bytes, "
                f"not {len(self.rgb)}"
            )
        content = hashlib.sha256(f"{self.width}x{self.height} ".encode())
        content.update(self.rgb)
        object.__setattr__(self, "digest", content.hexdigest())
