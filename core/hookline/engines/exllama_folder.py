"""What a folder of safetensors says of the model in it, read without loading the weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.errors import StartError

_TENSORS = {".trellis": "exl3", ".q_weight": "exl2", ".qweight": "gptq"}
"""Ends of tensors' names that tell how older files are quantized."""

_HEADER_BYTES = 100 * 2**20
"""Most bytes that the format's own library accepts as a header."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model as its makers published it: ``config`` is its ``config.json``, ``generation`` and
    ``tokenizer`` are ``generation_config.json`` and ``tokenizer_config.json``, empty where there
    are none.
    """

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    tokenizer: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> ModelFolder:
        """Reads the folder's small files. Raises StartError where it holds no usable model."""
        folder = cls(
            path,
            _json(path / "config.json", needed=True),
            _json(path / "generation_config.json"),
            _json(path / "tokenizer_config.json"),
        )
        if not folder.weights:
            raise StartError(f"{path} holds no .safetensors file")
        return folder

    @property
    def weights(self) -> list[Path]:
        """The files of the weights."""
        return sorted(self.path.glob("*.safetensors"))

    @property
    def quantization(self) -> str | None:
        """How the weights are quantized, in the words of ``config.json`` (``exl3``, ``exl2``,
        ``gptq``, ``awq``, …); None where they are plain numbers."""
        named = self.config.get("quantization_config") or {}
        method = named.get("quant_method") if isinstance(named, Mapping) else None
        if isinstance(method, str):
            return method.lower()
        return next((_TENSORS[end] for end in _TENSORS if self._has_tensor(end)), None)

    def _has_tensor(self, end: str) -> bool:
        return any(name.endswith(end) for name in _tensor_names(self.weights[0]))

    @property
    def context(self) -> int | None:
        """Tokens of context that the model was trained for, where it says so."""
        return self._number("max_position_embeddings")

    @property
    def vocabulary(self) -> int | None:
        """Rows of the model's logits, where it says so."""
        return self._number("vocab_size")

    def _number(self, key: str) -> int | None:
        inner = self.config.get("text_config")
        for where in (self.config, inner if isinstance(inner, Mapping) else {}):
            if isinstance(where.get(key), int):
                return int(where[key])
        return None

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end an answer, as far as the configurations name them by id."""
        named = [self.config.get("eos_token_id"), self.generation.get("eos_token_id")]
        flat = [i for ids in named for i in (ids if isinstance(ids, list) else [ids])]
        return frozenset(i for i in flat if isinstance(i, int))

    def token(self, name: str) -> str:
        """The text of a token that the tokenizer's configuration names, such as ``eos_token``;
        "" where it names none."""
        text = self.tokenizer.get(name)
        text = text.get("content") if isinstance(text, Mapping) else text
        return text if isinstance(text, str) else ""

    @property
    def chat_template(self) -> str | None:
        """The Jinja source of the model's default chat template."""
        file = self.path / "chat_template.jinja"
        if file.is_file():
            return file.read_text(encoding="utf-8")
        beside = _json(self.path / "chat_template.json").get("chat_template")
        template = self.tokenizer.get("chat_template") or beside
        if isinstance(template, list):
            named = {one.get("name"): one.get("template") for one in template}
            template = named.get("default")
        return template if isinstance(template, str) else None

    @property
    def size(self) -> int:
        """Bytes of the weights."""
        return sum(file.stat().st_size for file in self.weights)


def _json(path: Path, *, needed: bool = False) -> dict[str, Any]:
    if not needed and not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StartError(f"{path} is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise StartError(f"{path} holds no JSON object")
    return content


def _tensor_names(path: Path) -> Iterator[str]:
    """The names in a file's header: JSON after its length in eight bytes, little-endian."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _HEADER_BYTES:
                raise ValueError(f"a header of {length} bytes")
            yield from json.loads(file.read(length))
    except (OSError, ValueError) as error:
        raise StartError(f"{path} is no readable safetensors file: {error}") from error
