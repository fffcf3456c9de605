"""Tiny models that see, with random weights, one for each way in which images are read.

=========  ==============================================================================
internvl   an overview and a slice, without text between them, for a model of llama's kind
gemma3     vectors of an image look at each other in both directions (non-causal)
qwen2vl    M-RoPE: an image of rows and columns takes fewer positions than tokens
=========  ==============================================================================
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookline.config import ModelSettings
from hookline.engine import Job
from hookline.engines.llama_generator import LlamaCppGenerator
from hookline.images import Image

WORDS = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<start_of_image>")


class Weights:
    """Random tensors by name, into a GGUF file."""

    def __init__(self, path: Path, architecture: str) -> None:
        gguf = pytest.importorskip("gguf", reason="pip install gguf")
        self.kinds = gguf.GGMLQuantizationType
        self.quantize = gguf.quants.quantize
        self.writer = gguf.GGUFWriter(path, architecture)
        self.random = np.random.default_rng(7)

    def add(self, name: str, *shape: int, spread: float = 0.2, mean: float = 0.0) -> None:
        """Numbers in single precision."""
        numbers = self.random.normal(mean, spread, shape).astype(np.float32)
        self.writer.add_tensor(name, numbers)

    def add_quantized(self, name: str, *shape: int) -> None:
        """Numbers in eight bits, with which batches are exact."""
        numbers = self.random.normal(0, 0.2, shape).astype(np.float32)
        packed = self.quantize(numbers, self.kinds.Q8_0)
        self.writer.add_tensor(name, packed, raw_dtype=self.kinds.Q8_0)

    def norm(self, name: str, size: int, *, bias: bool = True) -> None:
        """Factors around one."""
        self.add(f"{name}.weight", size, mean=1.0)
        if bias:
            self.add(f"{name}.bias", size)

    def linear(self, name: str, inputs: int, outputs: int) -> None:
        """A matrix and its bias."""
        self.add(f"{name}.weight", outputs, inputs)
        self.add(f"{name}.bias", outputs)

    def close(self) -> None:
        """Writes the file."""
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


HEADS, INNER = 4, 128


def write_text_model(path: Path, kind: str, *, width: int = 64, layers: int = 2) -> Path:
    """A language model of bytes."""
    weights = Weights(path, {"internvl": "llama"}.get(kind, kind))
    writer = weights.writer
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    if kind == "qwen2vl":
        writer.add_rope_dimension_sections([2, 3, 3, 0])
    if kind == "gemma3":
        writer.add_key_length(width // HEADS)
        writer.add_value_length(width // HEADS)
    _write_tokenizer(writer)
    weights.add_quantized("token_embd.weight", 256 + len(WORDS), width)
    weights.norm("output_norm", width, bias=False)
    for layer in range(layers):
        _write_block(weights, f"blk.{layer}", kind, width)
    weights.close()
    return path


def _write_tokenizer(writer: Any) -> None:
    """A token for every byte, in the alphabet of GPT-2's tokenizer, and for some words."""
    plain = [chr(i) if 33 <= i <= 126 else chr(0x100 + i) for i in range(256)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*plain, *WORDS])
    writer.add_token_types([1] * 256 + [3] * len(WORDS))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(257)
    writer.add_bos_token_id(256)
    writer.add_add_bos_token(False)


def _write_block(weights: Weights, block: str, kind: str, width: int) -> None:
    for name in ("attn_norm", "ffn_norm"):
        weights.norm(f"{block}.{name}", width, bias=False)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weights.add_quantized(f"{block}.{name}.weight", width, width)
    for name in ("ffn_gate", "ffn_up"):
        weights.add_quantized(f"{block}.{name}.weight", INNER, width)
    weights.add_quantized(f"{block}.ffn_down.weight", width, INNER)
    if kind == "qwen2vl":
        for name in ("attn_q", "attn_k", "attn_v"):
            weights.add(f"{block}.{name}.bias", width)
    if kind == "gemma3":
        for name in ("post_attention_norm", "post_ffw_norm"):
            weights.norm(f"{block}.{name}", width, bias=False)
        for name in ("attn_k_norm", "attn_q_norm"):
            weights.norm(f"{block}.{name}", width // HEADS, bias=False)


def write_projector(path: Path, kind: str, *, out: int, size: int = 56) -> Path:
    """An image encoder whose vectors have ``out`` numbers."""
    weights = Weights(path, "clip")
    writer, width, inner, patch = weights.writer, 32, 64, 14
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", {"qwen2vl": "qwen2vl_merger"}.get(kind, kind))
    writer.add_bool("clip.use_gelu", True)
    for name, value in {
        "image_size": size,
        "patch_size": patch,
        "embedding_length": width,
        "feed_forward_length": inner,
        "block_count": 1,
        "projection_dim": out,
        "attention.head_count": 2,
        "projector.scale_factor": 2,
        "preproc_min_tiles": 1,
        "preproc_max_tiles": 1,
    }.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.3, 0.3, 0.3])
    weights.add("v.patch_embd.weight", width, 3, patch, patch, spread=0.05)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        weights.linear(f"v.blk.0.{name}", width, width)
    weights.linear("v.blk.0.ffn_up", width, inner)
    weights.linear("v.blk.0.ffn_down", inner, width)
    for name in ("v.blk.0.ln1", "v.blk.0.ln2", "v.post_ln"):
        weights.norm(name, width)
    _HEADS[kind](weights, width, out, (size // patch) ** 2)
    weights.close()
    return path


def _internvl(weights: Weights, width: int, out: int, patches: int) -> None:
    weights.add("v.patch_embd.bias", width)
    weights.add("v.class_embd", width)
    weights.add("v.position_embd.weight", patches + 1, width)
    weights.norm("mm.model.mlp.0", 4 * width)
    weights.linear("mm.model.mlp.1", 4 * width, width)
    weights.linear("mm.model.mlp.3", width, out)


def _gemma3(weights: Weights, width: int, out: int, patches: int) -> None:
    weights.add("v.patch_embd.bias", width)
    weights.add("v.position_embd.weight", patches, width)
    weights.add("mm.input_projection.weight", width, out)
    weights.norm("mm.soft_emb_norm", width, bias=False)


def _qwen2vl(weights: Weights, width: int, out: int, patches: int) -> None:
    weights.add("v.patch_embd.weight.1", width, 3, 14, 14, spread=0.05)
    weights.linear("mm.0", 4 * width, inner := 2 * width)
    weights.linear("mm.2", inner, out)


_HEADS: dict[str, Callable[[Weights, int, int, int], None]] = {
    "internvl": _internvl,
    "gemma3": _gemma3,
    "qwen2vl": _qwen2vl,
}


@dataclass(frozen=True)
class Tiny:
    """Writes tiny models."""

    text_model: Callable[..., Path] = write_text_model
    projector: Callable[..., Path] = write_projector

    def seeing(self, path: Path, projector: Path, kind: str, **settings: Any) -> Seeing:
        """A model with its projector, loaded."""
        return Seeing(load(path, projector, **settings), kind)


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """Writes tiny models."""
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: pip install 'hookline[llamacpp]'")
    return Tiny()


@dataclass
class Seeing:
    """A generator that sees, and prompts for it."""

    generator: LlamaCppGenerator
    kind: str

    def text(self, text: str) -> list[int]:
        return self.generator.model.tokenize(text, special=True, bos=False)

    def job(self, *parts: str | Image, tokens: int = 4, **about: Any) -> Job:
        """A job whose prompt is text and images, one after the other."""
        ids: list[int] = []
        images: list[Image] = []
        for part in parts:
            if isinstance(part, Image):
                ids += self.generator.layout(part).ids(len(images))
                images.append(part)
            else:
                ids += self.text(part)
        return Job(ids, images=images, max_tokens=tokens, ignore_end=True, **about)


@pytest.fixture(scope="session")
def picture() -> Callable[..., Image]:
    """Makes an image of noise, another one for each number."""

    def make(number: int, width: int = 112, height: int = 56) -> Image:
        pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)
        return Image(width, height, pixels.tobytes())

    return make


def load(path: Path, projector: Path, **settings: Any) -> LlamaCppGenerator:
    chosen = ModelSettings(**{"context": 384, "parallel": 3, "threads": 1} | settings)
    chosen.mmproj = projector
    generator = LlamaCppGenerator(path, model_id="tiny", settings=chosen)
    generator.load(lambda _: None)
    return generator


@pytest.fixture(scope="session", params=["internvl", "gemma3", "qwen2vl"])
def seeing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seeing]:
    """Each kind of model that sees."""
    folder = tmp_path_factory.mktemp(request.param)
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: pip install 'hookline[llamacpp]'")
    path = write_text_model(folder / "text.gguf", request.param)
    generator = load(path, write_projector(folder / "mmproj.gguf", request.param, out=64))
    yield Seeing(generator, request.param)
    generator.close()


@pytest.fixture(scope="module")
def generator(seeing: Seeing) -> LlamaCppGenerator:
    """The generator that a `player` plays."""
    return seeing.generator
