"""A GGUF model that embeds, through llama.cpp."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hookline import StartError
from hookline.engines.llama_library import library
from hookline_knowledge.embedders.backend import Vector, of_length_one

MOST_TOKENS = 2048
"""Of one text, whatever the model could read: scratch memory grows with it."""


class Gguf:
    """A model and a context of llama.cpp, which one thread at a time may use."""

    parallel = 1

    def __init__(self, path: Path, *, threads: int) -> None:
        self._path = path
        self._api, self._log, _ = library()
        self._model = self._load()
        try:
            self._vocab = self._api.llama_model_get_vocab(self._model)
            trained = int(self._api.llama_model_n_ctx_train(self._model))
            self.context = min(trained or MOST_TOKENS, MOST_TOKENS)
            self._context = self._pooling_context(threads)
        except BaseException:
            self._api.llama_model_free(self._model)
            raise
        self._batch = self._api.llama_batch_init(self.context, 0, 1)
        self._size = int(self._api.llama_vocab_n_tokens(self._vocab))
        self.dimensions = int(self._api.llama_model_n_embd(self._model))
        self._ends = self._tokens("", special=True)
        self.max_tokens = self.context - len(self._ends)

    def _load(self) -> Any:
        params = self._api.llama_model_default_params()
        params.use_extra_bufts = False  # repacked weights crash where all tokens have outputs
        with self._log.kept_quiet():
            model = self._api.llama_model_load_from_file(str(self._path).encode(), params)
        if not model:
            reason = self._log.first_error() or "llama.cpp does not say why"
            raise StartError(f"The embedding model {self._path} cannot be loaded: {reason}")
        return model

    def _pooling_context(self, threads: int) -> Any:
        """A context that makes one vector of all tokens, as the model's file says: of those that
        only generate, the mean."""
        api = self._api
        context = self._new_context(threads, api.LLAMA_POOLING_TYPE_UNSPECIFIED)
        pooling = api.llama_pooling_type(context)
        if pooling not in (api.LLAMA_POOLING_TYPE_NONE, api.LLAMA_POOLING_TYPE_RANK):
            return context
        api.llama_free(context)
        if pooling == api.LLAMA_POOLING_TYPE_RANK:
            raise StartError(f"{self._path} ranks texts, it does not embed them")
        return self._new_context(threads, api.LLAMA_POOLING_TYPE_MEAN)

    def _new_context(self, threads: int, pooling: int) -> Any:
        params = self._api.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = self.context
        params.n_outputs_max = self.context
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = threads
        params.pooling_type = pooling
        params.embeddings = True
        params.no_perf = True
        with self._log.kept_quiet():
            context = self._api.llama_init_from_model(self._model, params)
        if not context:
            reason = self._log.first_error() or "llama.cpp does not say why"
            raise StartError(f"No context for the embedding model {self._path}: {reason}")
        return context

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, without those the model adds; control tokens are plain text."""
        return self._tokens(text, special=False)

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        raw = text.encode(errors="replace")
        return _filled(
            lambda ids, room: self._api.llama_tokenize(
                self._vocab, raw, len(raw), ids, room, special, False
            ),
            self._api.llama_token,
            len(raw) + 8,
        )

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of tokens. Raises ValueError for an id outside the vocabulary."""
        wrong = next((i for i in ids if not 0 <= i < self._size), None)
        if wrong is not None:
            raise ValueError(f"{wrong} is no token of this model")
        tokens = (self._api.llama_token * len(ids))(*ids)
        codes = _filled(
            lambda text, room: self._api.llama_detokenize(
                *(self._vocab, tokens, len(ids)),
                *(ctypes.cast(text, ctypes.c_char_p), room, True, False),
            ),
            ctypes.c_uint8,
            len(ids) * 8 + 8,
        )
        return bytes(codes).decode(errors="replace")

    def embed(self, text: str) -> tuple[Vector, int]:
        """The text's vector, of length 1, and how many tokens were read."""
        ids = self._tokens(text, special=True)
        if len(ids) > self.context:  # the last may be the token that stands for all
            ids = ids[: self.context - 1] + ids[-1:]
        if not ids:
            return np.zeros(self.dimensions, np.float32), 0
        self._fill(ids)
        if memory := self._api.llama_get_memory(self._context):
            self._api.llama_memory_clear(memory, True)
        if status := self._api.llama_decode(self._context, self._batch):
            raise RuntimeError(f"llama_decode returned {status} for a text of {len(ids)} tokens")
        pointer = self._api.llama_get_embeddings_seq(self._context, 0)
        vector = np.ctypeslib.as_array(pointer, shape=(self.dimensions,)).copy()
        return of_length_one(vector), len(ids)

    def _fill(self, ids: Sequence[int]) -> None:
        batch = self._batch
        batch.n_tokens = len(ids)
        for place, token in enumerate(ids):
            batch.token[place] = token
            batch.pos[place] = place
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = 0
            batch.logits[place] = True

    def close(self) -> None:
        """Frees the context and the model."""
        self._api.llama_batch_free(self._batch)
        self._api.llama_free(self._context)
        self._api.llama_model_free(self._model)


def _filled(call: Callable[[Any, int], int], kind: Any, room: int) -> list[int]:
    """What a C function writes into an array that it may refuse once as too small."""
    array = (kind * room)()
    count = call(array, room)
    if count < 0:
        array = (kind * -count)()
        count = call(array, -count)
    return list(array[:count])
