"""A GGUF model in memory: its weights, its tokenizer and what its metadata says."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hookline.engine import Vocabulary
from hookline.engines.llama_library import library
from hookline.errors import NoModel, StartError

_NO_TEXT_ATTRIBUTES = 1 << 0 | 1 << 3  # unknown, control
_USER_DEFINED = 1 << 4


class LlamaModel:
    """The weights and the tokenizer. Raises StartError when the file cannot be used.

    The tokenizer may be used from any thread, also while another closes the model: then NoModel.
    """

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int,
        repack: bool,
        progress: Callable[[float], None],
    ) -> None:
        self.path = path
        self.api, self.log, _ = library()
        self._lock = threading.Lock()
        self._handle: Any = None
        check_magic(path, "model")
        self._handle = self._load(gpu_layers, repack, progress)
        self._vocab = self.api.llama_model_get_vocab(self._handle)
        self.size = int(self.api.llama_vocab_n_tokens(self._vocab))
        self._refuse_what_cannot_generate()
        self._read_special()

    def _load(self, gpu_layers: int, repack: bool, progress: Callable[[float], None]) -> Any:
        @self.api.llama_progress_callback  # type: ignore[untyped-decorator]
        def report(done: float, _: ctypes.c_void_p) -> bool:
            progress(done)
            return True

        params = self.api.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        params.use_extra_bufts = repack
        params.progress_callback = report
        with self.log.kept_quiet():
            handle = self.api.llama_model_load_from_file(str(self.path).encode(), params)
        if not handle:
            reason = self.log.first_error() or "llama.cpp does not say why"
            raise StartError(f"The model {self.path} cannot be loaded: {reason}")
        return handle

    def _refuse_what_cannot_generate(self) -> None:
        api = self.api
        if self.size == 0 or not api.llama_model_has_decoder(self._handle):
            reason = "it has no vocabulary" if self.size == 0 else "it only embeds text"
        elif api.llama_model_has_encoder(self._handle):
            reason = "models with an encoder are not supported"
        elif api.llama_model_is_diffusion(self._handle):
            reason = "diffusion models are not supported"
        else:
            return
        self.close()
        raise StartError(f"The model {self.path} cannot generate text: {reason}.")

    def _read_special(self) -> None:
        attributes = [self.api.llama_vocab_get_attr(self._vocab, i) for i in range(self.size)]
        is_end = self.api.llama_vocab_is_eog
        self.end = frozenset(i for i in range(self.size) if is_end(self._vocab, i))
        self.special = self.end | {i for i, a in enumerate(attributes) if a & _NO_TEXT_ATTRIBUTES}
        written = sorted(self.special | {i for i, a in enumerate(attributes) if a & _USER_DEFINED})
        self.special_texts = tuple(self.raw(i).decode(errors="replace") for i in written)
        self.longest = max(len(self.raw(i)) for i in range(self.size))
        bos = self.api.llama_vocab_bos(self._vocab)
        self._begin = [bos] if bos >= 0 and self.api.llama_vocab_get_add_bos(self._vocab) else []
        self.bos = self.raw(bos).decode(errors="replace") if bos >= 0 else ""
        eos = self.api.llama_vocab_eos(self._vocab)
        self.eos = self.raw(eos).decode(errors="replace") if eos >= 0 else ""

    @property
    def handle(self) -> Any:
        """The C pointer, for contexts."""
        return self._handle

    @property
    def context(self) -> int:
        """Tokens of context that the model was trained for."""
        return int(self.api.llama_model_n_ctx_train(self._handle))

    @property
    def rewinds(self) -> bool:
        """Whether a sequence can be cut back to any of its tokens; recurrent state cannot."""
        recurrent = self.api.llama_model_is_recurrent(self._handle)
        return not (recurrent or self.api.llama_model_is_hybrid(self._handle))

    @property
    def chat_template(self) -> str | None:
        """The Jinja source of the model's default chat template."""
        source = self.api.llama_model_chat_template(self._handle, None)
        return source.decode(errors="replace") if source else None

    def details(self) -> dict[str, Any]:
        """What an operator wants to know about the file."""
        text = ctypes.create_string_buffer(256)
        self.api.llama_model_desc(self._handle, text, len(text))
        return {
            "file": self.path.name,
            "size_bytes": int(self.api.llama_model_size(self._handle)),
            "parameters": int(self.api.llama_model_n_params(self._handle)),
            "description": text.value.decode(errors="replace"),
            "n_ctx_train": self.context,
        }

    def raw(self, token: int) -> bytes:
        """The bytes of one token, control tokens written out."""
        text = ctypes.create_string_buffer(64)
        for _ in range(2):
            got = self.api.llama_token_to_piece(self._vocab, token, text, len(text), 0, True)
            if got >= 0:
                return text.raw[:got]
            text = ctypes.create_string_buffer(-got)
        raise ValueError(f"token {token} has no text")

    def vocabulary(self) -> Vocabulary:
        """All tokens."""
        with self._lock:
            self._must_be_open()
            tokens = tuple(self.raw(token) for token in range(self.size))
        return Vocabulary(tokens, self.special, self.end)

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        """Text to ids. Half a surrogate pair, which UTF-8 cannot write, becomes ``?``."""
        raw = text.encode(errors="replace")
        begin = self._begin if bos else []
        return begin + self._fill(
            lambda ids, room: self.api.llama_tokenize(
                self._vocab, raw, len(raw), ids, room, False, special
            ),
            self.api.llama_token,
            len(raw) + 8,
        )

    def detokenize(self, ids: Sequence[int]) -> str:
        """Ids to text, control tokens written out. The space that some tokenizers put before a
        text is taken away again. Raises ValueError for an id outside the vocabulary."""
        wrong = next((i for i in ids if not 0 <= i < self.size), None)
        if wrong is not None:
            raise ValueError(f"token {wrong} is not in the vocabulary of {self.size}")
        tokens = (self.api.llama_token * len(ids))(*ids)
        codes = self._fill(
            lambda text, room: self.api.llama_detokenize(
                self._vocab, tokens, len(ids), ctypes.cast(text, ctypes.c_char_p), room, False, True
            ),
            ctypes.c_uint8,
            len(ids) * 8 + 8,
        )
        return bytes(codes).decode(errors="replace")

    def _fill(self, call: Callable[[Any, int], int], kind: Any, room: int) -> list[int]:
        """What a C function writes into an array that it may refuse once as too small."""
        with self._lock:
            self._must_be_open()
            array = (kind * room)()
            count = call(array, room)
            if count < 0:
                array = (kind * -count)()
                count = call(array, -count)
        return list(array[:count])

    def _must_be_open(self) -> None:
        if self._handle is None:
            raise NoModel("The model is being loaded again. Try again in a moment.", retry_after=2)

    def close(self) -> None:
        """Frees the weights. Contexts on them must be closed before."""
        with self._lock:
            if self._handle is not None:
                self.api.llama_model_free(self._handle)
                self._handle = None


def check_magic(path: Path, what: str) -> None:
    """Raises StartError for what is no GGUF file; ``what`` it should be."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise StartError(f"The {what} {path} cannot be read: {error.strerror}") from error
    if magic != b"GGUF":
        raise StartError(f"The {what} {path} is not a GGUF file (it begins with {magic!r}).")
