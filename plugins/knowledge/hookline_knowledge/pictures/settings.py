"""``[plugin.knowledge.pictures]``: whether pictures are looked at."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class PictureSettings(BaseModel):
    """The CLIP model that looks at pictures, from the extra ``clip``."""

    model_config = ConfigDict(extra="forbid")

    checkpoint: Path | None = Field(
        None, description="File with the model's weights; without it no picture is looked at."
    )
    architecture: str = Field(
        "ViT-B-32", min_length=1, description="The model's architecture, by open_clip's name."
    )
    floor: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Least similarity of a picture to a text. A fitting one has about 0.3: less "
        "than passages have.",
    )
    seconds: float = Field(20, gt=0, le=600, description="How long decoding a picture may take.")
    megapixels: int = Field(40, ge=1, le=1000, description="Largest picture, in million pixels.")
