"""An embedder whose model runs in this process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

from hookline import ApiError, Usage
from hookline_knowledge.embedders.backend import Backend, Vector
from hookline_knowledge.embedders.profiles import Profile
from hookline_knowledge.embedders.workers import Workers
from hookline_knowledge.problems import KnowledgeUnavailable

log = logging.getLogger(__name__)


class LocalEmbedder:
    """Fulfils `hookline.Embedder` with a model of this process."""

    def __init__(self, name: str, backend: Backend, profile: Profile) -> None:
        self.name = name
        self.dimensions = backend.dimensions
        self._backend = backend
        self._profile = profile
        self._workers: Workers[tuple[Vector, int]] = Workers(
            backend.embed, threads=backend.parallel, name=f"embedder {name}"
        )
        longest = max(self.count(profile.prefix(kind)) for kind in ("query", "document"))
        self.max_tokens = backend.max_tokens - longest

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        return len(self._backend.tokenize(text))

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of token ids. Raises ValueError for an id outside the vocabulary."""
        return self._backend.detokenize(ids)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["query", "document"] = "document",
        usage: Usage | None = None,
    ) -> list[list[float]]:
        """One vector of length 1 a text, in order."""
        prefix = self._profile.prefix(kind)
        try:
            results = await self._workers.run([prefix + text for text in texts], kind)
        except ApiError:
            raise
        except Exception as error:
            log.exception("the embedder %s failed", self.name)
            raise KnowledgeUnavailable(
                f"The embedding model '{self.name}' failed. The server's log has the details."
            ) from error
        if usage is not None:
            usage.prompt_tokens += sum(tokens for _, tokens in results)
        return [vector.tolist() for vector, _ in results]

    async def close(self) -> None:
        """Frees the model, once no thread uses it."""
        await self._workers.close()
        self._backend.close()
