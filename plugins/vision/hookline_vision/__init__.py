"""Images in a conversation: decoded safely, for models that see and, as text, for those that do
not."""

from hookline_vision.plugin import Vision
from hookline_vision.settings import VisionSettings

__all__ = ["Vision", "VisionSettings"]
