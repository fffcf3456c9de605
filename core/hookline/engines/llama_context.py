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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hookline.engines.llama_library import library
from hookline.engines.llama_model import LlamaModel
from hookline.errors import StartError

_ABORTED = 2
_KV_SIZE = re.compile(r"size\s*=\s*([\d.]+) MiB \(.*cells")

Logits = npt.NDArray[np.float32]


class Aborted(Exception):
    """A prompt chunk was broken off; its sequence is as it was before."""


class Place(NamedTuple):
    """Where a decoded token goes: the sequence, and the position in it.

    Without ``wants_logits`` the model only reads the token, which saves its last matrix products;
    what it remembers of it is the same to the bit.
    """

    sequence: int
    position: int
    token: int
    wants_logits: bool = True


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
        self._batch = _Batch(self._api, self._rows)
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
        log.lines.clear()
        log.quiet = True
        try:
            handle = self._api.llama_init_from_model(model.handle, params)
        finally:
            log.quiet = False
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
        count = len(tokens)
        self._batch.fill_prompt(sequence, tokens, start, want_logits=want_logits)
        status = self._decode_watched(aborted) if aborted else self._decode()
        if status:
            self.cut(sequence, start)
            if status == _ABORTED:
                raise Aborted
            reason = library().log.first_error() or f"llama_decode returned {status}"
            raise RuntimeError(f"a chunk of {count} tokens could not be read: {reason}")
        return self._logits(1)[0] if want_logits else None

    def decode(self, places: Sequence[Place]) -> Logits:
        """One token for each of several sequences; logits of shape ``(wanted, vocabulary)`` for
        the places that want them, a view that the next pass overwrites."""
        self._batch.fill_decode(places)
        status = self._decode()
        if status:
            raise RuntimeError(f"llama_decode returned {status} for {len(places)} sequences")
        return self._logits(sum(place.wants_logits for place in places))

    def _decode(self) -> int:
        return int(self._api.llama_decode(self._handle, self._batch.struct))

    def _decode_watched(self, aborted: Callable[[], bool]) -> int:
        callback = self._api.ggml_abort_callback(lambda _: aborted())
        self._api.llama_set_abort_callback(self._handle, callback, None)
        log = library().log
        log.lines.clear()
        log.quiet = True  # the library takes being broken off for an error
        try:
            return self._decode()
        finally:
            log.quiet = False
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


class _Batch:
    """llama.cpp's batch over numpy arrays, so that filling it costs a few slices."""

    def __init__(self, api: Any, rows: int) -> None:
        self._tokens = np.zeros(rows, np.int32)
        self._positions = np.zeros(rows, np.int32)
        self._sequences = np.zeros(rows, np.int32)
        self._counts = np.ones(rows, np.int32)
        self._outputs = np.zeros(rows, np.int8)
        self._steps = np.arange(rows, dtype=np.int32)
        step = self._sequences.itemsize
        self._pointers = self._sequences.ctypes.data + np.arange(rows, dtype=np.uintp) * step
        self.struct = api.llama_batch()
        for name, array in (
            ("token", self._tokens),
            ("pos", self._positions),
            ("n_seq_id", self._counts),
            ("seq_id", self._pointers),
            ("logits", self._outputs),
        ):
            kind = dict(api.llama_batch._fields_)[name]
            setattr(self.struct, name, ctypes.cast(array.ctypes.data, kind))

    def fill_prompt(
        self, sequence: int, tokens: npt.NDArray[np.int32], start: int, *, want_logits: bool
    ) -> None:
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = self._steps[:count] + start
        self._sequences[:count] = sequence
        self._outputs[:count] = 0
        self._outputs[count - 1] = want_logits
        self.struct.n_tokens = count

    def fill_decode(self, places: Sequence[Place]) -> None:
        for row, place in enumerate(places):
            self._tokens[row] = place.token
            self._positions[row] = place.position
            self._sequences[row] = place.sequence
            self._outputs[row] = place.wants_logits
        self.struct.n_tokens = len(places)


def _kv_bytes() -> int:
    """What llama.cpp said it allocated; it knows better than any formula over architectures."""
    lines = [line.text for line in library().log.lines]
    return round(sum(float(m[1]) for line in lines if (m := _KV_SIZE.search(line))) * 2**20)
