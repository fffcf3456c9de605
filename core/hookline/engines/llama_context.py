"""The KV memory of a model, one stream a sequence, and the forward passes over it.

Which settings make an answer bit for bit the same alone and beside others was found by comparing
logits and whole KV streams bitwise (``tests/engines/test_llamacpp_exact.py`` does it again):

* no repacked weights (``use_extra_bufts``), no tiled matrix products: their kernels sum in another
  order for other batch widths;
* no flash attention, KV in half precision, one KV stream a sequence (``kv_unified`` off);
* a prompt chunk never shares a pass with anything else and is never a single token: one row takes
  other kernels than several;
* only what was computed as prompt is reused, since a decoded token's KV has other last bits.

Some types of weights are exact in no batch; `exactness` finds out when a model is loaded.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hookline.engines.llama_batch import Place as Place
from hookline.engines.llama_batch import TokenBatch, VectorBatch
from hookline.engines.llama_library import library
from hookline.engines.llama_model import LlamaModel
from hookline.errors import StartError

_ABORTED = 2
_KV_SIZE = re.compile(r"size\s*=\s*([\d.]+) MiB \(.*cells")

Logits = npt.NDArray[np.float32]


class Aborted(Exception):
    """A prompt chunk was broken off; its sequence is as it was before."""


class LlamaContext:
    """KV memory for ``parallel`` sequences of ``context`` tokens. Belongs to one thread.

    ``chunk`` is the most that is read of a prompt at once; scratch memory grows with it.
    """

    def __init__(
        self,
        model: LlamaModel,
        *,
        context: int,
        parallel: int,
        chunk: int,
        threads: int,
        exact: bool,
    ) -> None:
        self._api = model.api
        self._vocabulary = model.size
        self._rows = max(chunk, parallel)
        self._handle = self._create(model, context, parallel, threads, exact)
        self._memory = self._api.llama_get_memory(self._handle)
        self.kv_bytes = _kv_bytes()
        self._batch = TokenBatch(self._api, self._rows)
        self._no_abort = self._api.ggml_abort_callback()
        self._view: tuple[int, Logits] | None = None

    def _create(
        self, model: LlamaModel, context: int, parallel: int, threads: int, exact: bool
    ) -> Any:
        params = self._api.llama_context_default_params()
        params.n_ctx = context * parallel
        params.n_seq_max = parallel
        params.n_batch = params.n_ubatch = self._rows
        params.n_outputs_max = parallel
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.swa_full = True  # a window that forgot its past could not be cut back to a prefix
        params.no_perf = True
        if exact:
            params.flash_attn_type = 0
            params.offload_kqv = params.op_offload = False
        log = library().log
        with log.kept_quiet():
            handle = self._api.llama_init_from_model(model.handle, params)
        if not handle:
            raise StartError(
                f"No memory for {parallel} x {context} tokens of context "
                f"({log.first_error() or 'llama.cpp does not say why'}). "
                "Lower context or parallel in [model]."
            )
        return handle

    def prefill(
        self,
        sequence: int,
        tokens: npt.NDArray[np.int32],
        start: int,
        *,
        want_logits: bool,
        aborted: Callable[[], bool] | None = None,
    ) -> Logits | None:
        """Reads one chunk of a prompt whose first token has the position ``start``.

        Returns the logits after its last token, a view that the next pass overwrites. Looks at
        ``aborted`` all the time; raises Aborted when it says so.
        """
        self._batch.fill_prompt(sequence, tokens, start, want_logits=want_logits)
        self._read(self._batch.struct, sequence, start, aborted)
        return self._logits(1)[0] if want_logits else None

    def look(
        self,
        sequence: int,
        vectors: npt.NDArray[np.float32],
        positions: npt.NDArray[np.int32],
        *,
        start: int,
        causal: bool,
        want_logits: bool,
        aborted: Callable[[], bool] | None = None,
    ) -> Logits | None:
        """Reads vectors of an image like a chunk of a prompt; not ``causal``: each looks at all of
        them. What is at ``start`` and after it is forgotten where it is broken off.
        """
        batch = VectorBatch(self._api, sequence, vectors, positions, want_logits=want_logits)
        self._api.llama_set_causal_attn(self._handle, causal)
        try:
            self._read(batch.struct, sequence, start, aborted)
        finally:
            self._api.llama_set_causal_attn(self._handle, True)
        return self._logits(1)[0] if want_logits else None

    def _read(
        self, batch: Any, sequence: int, start: int, aborted: Callable[[], bool] | None
    ) -> None:
        status = self._decode_watched(batch, aborted) if aborted else self._decode(batch)
        if status:
            self.cut(sequence, start)
            if status == _ABORTED:
                raise Aborted
            reason = library().log.first_error() or f"llama_decode returned {status}"
            raise RuntimeError(f"a chunk of {batch.n_tokens} tokens could not be read: {reason}")

    def decode(self, places: Sequence[Place]) -> Logits:
        """One token for each of several sequences; logits of shape ``(wanted, vocabulary)`` for
        the places that want them, a view that the next pass overwrites."""
        self._batch.fill_decode(places)
        status = self._decode(self._batch.struct)
        if status:
            raise RuntimeError(f"llama_decode returned {status} for {len(places)} sequences")
        return self._logits(sum(place.wants_logits for place in places))

    def _decode(self, batch: Any) -> int:
        return int(self._api.llama_decode(self._handle, batch))

    def _decode_watched(self, batch: Any, aborted: Callable[[], bool]) -> int:
        callback = self._api.ggml_abort_callback(lambda _: aborted())
        self._api.llama_set_abort_callback(self._handle, callback, None)
        try:
            with library().log.kept_quiet():  # the library takes being broken off for an error
                return self._decode(batch)
        finally:
            self._api.llama_set_abort_callback(self._handle, self._no_abort, None)

    def _logits(self, rows: int) -> Logits:
        if not rows:
            return np.empty((0, self._vocabulary), np.float32)
        pointer = self._api.llama_get_logits(self._handle)
        address = ctypes.addressof(pointer.contents)
        if self._view is None or self._view[0] != address or len(self._view[1]) < rows:
            shape = (rows, self._vocabulary)
            self._view = (address, np.ctypeslib.as_array(pointer, shape=shape))
        return self._view[1][:rows]

    def cut(self, sequence: int, length: int) -> bool:
        """Forgets all but the first ``length`` tokens; False when the model can only forget
        everything, which was then done."""
        if self._api.llama_memory_seq_rm(self._memory, sequence, length, -1):
            return True
        self._api.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        return length == 0

    def copy(self, source: int, target: int) -> None:
        """Makes ``target`` a copy of ``source``, byte for byte.

        Through the serialized state: it costs what is in use, while ``llama_memory_seq_cp`` copies
        the whole stream.
        """
        size = self._api.llama_state_seq_get_size(self._handle, source)
        state = np.empty(size, np.uint8)
        pointer = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        self._api.llama_state_seq_get_data(self._handle, pointer, size, source)
        if not self._api.llama_state_seq_set_data(self._handle, pointer, size, target):
            raise RuntimeError(f"llama.cpp could not copy sequence {source} to {target}")

    def state(self, sequence: int) -> bytes:
        """The whole KV of a sequence, for comparing."""
        size = self._api.llama_state_seq_get_size(self._handle, sequence)
        state = (ctypes.c_uint8 * size)()
        self._api.llama_state_seq_get_data(self._handle, state, size, sequence)
        return bytes(state)

    def close(self) -> None:
        """Frees the KV memory."""
        if self._handle is not None:
            self._api.llama_free(self._handle)
            self._handle = None


def _kv_bytes() -> int:
    """What llama.cpp said it allocated; it knows better than any formula over architectures."""
    lines = [line.text for line in library().log.lines]
    return round(sum(float(m[1]) for line in lines if (m := _KV_SIZE.search(line))) * 2**20)
