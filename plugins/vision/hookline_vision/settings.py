"""``[plugin.vision]``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class VisionSettings(BaseModel):
    """Settings of the plugin."""

    model_config = ConfigDict(extra="forbid")

    max_images: int = Field(16, ge=1, le=16, description="Images that a request may carry.")
    max_image_mb: float = Field(20, gt=0, le=1000, description="Megabytes of an encoded image.")
    max_megapixels: float = Field(
        40, gt=0, le=1000, description="Megapixels of an image; larger ones are never decoded."
    )
    max_side: int = Field(
        2048,
        ge=16,
        le=16384,
        description="Longer side, in pixels, to which a larger image is scaled down.",
    )
    low_side: int = Field(
        512, ge=16, le=16384, description='The same where a request says "detail": "low".'
    )
    seconds: float = Field(10, gt=0, le=600, description="How long decoding an image may take.")
    memory_mb: int = Field(
        1536,
        ge=128,
        le=2**20,
        description="Megabytes a decoder may use; it takes about 20 bytes for each pixel.",
    )
    decoders: int = Field(2, ge=1, le=32, description="Images that are decoded at once.")
    cache_mb: float = Field(
        64, ge=0, le=65536, description="Megabytes kept of images, for when they come again."
    )
    fallback: Literal["none", "ocr", "clip"] = Field(
        "none",
        description="What a model that cannot see is given: nothing, the text in an image, or "
        "labels that fit it.",
    )
    fallback_seconds: float = Field(
        30, gt=0, le=600, description="How long reading the text of one image may take."
    )
    fallback_memory_mb: int = Field(
        2048, ge=512, le=2**20, description="Megabytes that reading the text of images may use."
    )
    clip_checkpoint: Path | None = Field(
        None, description="File with the weights of the CLIP model; needed for fallback = 'clip'."
    )
    clip_architecture: str = Field(
        "ViT-B-32", min_length=1, description="Its architecture, by open_clip's name."
    )
    clip_labels: list[str] = Field(
        default=[
            "a photo of a person",
            "a photo of several people",
            "a photo of an animal",
            "a photo of food",
            "a photo of a plant",
            "a photo of a vehicle",
            "a photo of a building",
            "a photo of a room",
            "a photo of a landscape",
            "a photo of an object",
            "a screenshot of a program",
            "a page of text",
            "a handwritten note",
            "a chart or diagram",
            "a map",
            "a drawing or painting",
            "a logo or icon",
        ],
        min_length=2,
        description="Labels to choose from.",
    )
    clip_best: int = Field(3, ge=1, le=20, description="How many of the labels are told.")
