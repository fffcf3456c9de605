"""What turns texts into vectors: models that run here, and those of other servers."""

from hookline_knowledge.embedders.local import LocalEmbedder
from hookline_knowledge.embedders.opening import Embedders

__all__ = ["Embedders", "LocalEmbedder"]
