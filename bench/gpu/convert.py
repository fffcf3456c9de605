"""Turns a GGUF of a Llama model into the folder of safetensors that the ExLlama engines read.

    python bench/gpu/convert.py MODEL.gguf FOLDER

Needs `gguf`, `safetensors`, `tokenizers` and numpy, no GPU and no PyTorch. The weights become half
precision, so that all engines can be asked about (nearly) the same numbers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, dequantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Tensors by their names in GGUF; those of a layer without its number."""

CONTROL = 3
"""The type of control tokens in a GGUF."""


def convert(source: Path, folder: Path) -> None:
    """Writes the folder. Raises SystemExit for a model that is no Llama with a GPT-2 tokenizer."""
    reader = GGUFReader(source)
    about = {name: field.contents() for name, field in reader.fields.items()}
    kinds = (about["general.architecture"], about["tokenizer.ggml.model"])
    if kinds != ("llama", "gpt2"):
        raise SystemExit(f"{source} is {kinds}; only ('llama', 'gpt2') is converted here")
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {_name(tensor.name): _tensor(tensor, about) for tensor in reader.tensors}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", _config(about, tied="lm_head.weight" not in tensors))
    write_json(folder / "generation_config.json", {"eos_token_id": _id(about, "eos")})
    names = about["tokenizer.ggml.tokens"]
    special = {f"{kind}_token": names[_id(about, kind)] for kind in ("bos", "eos")}
    write_json(folder / "tokenizer_config.json", special)
    (folder / "chat_template.jinja").write_text(about["tokenizer.chat_template"])
    _tokenizer(about).save(str(folder / "tokenizer.json"))


def write_json(path: Path, content: dict[str, Any]) -> None:
    """A small readable file."""
    path.write_text(json.dumps(content, indent=2))


def _id(about: dict[str, Any], kind: str) -> int:
    return int(about[f"tokenizer.ggml.{kind}_token_id"])


def _name(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    _, layer, part, end = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{end}"


def _tensor(tensor: Any, about: dict[str, Any]) -> npt.NDArray[np.float16]:
    weights = dequantize(tensor.data, tensor.tensor_type)
    for part, count in (("attn_q", "head_count"), ("attn_k", "head_count_kv")):
        if f".{part}.weight" in tensor.name:
            weights = _rows_as_published(weights, int(about[f"llama.attention.{count}"]))
    return np.ascontiguousarray(weights.astype(np.float16))


def _rows_as_published(weights: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """GGUF interleaves the two halves that rotary embedding turns in each head; this parts them."""
    rows, columns = weights.shape
    split = weights.reshape(heads, rows // heads // 2, 2, columns)
    return split.swapaxes(1, 2).reshape(rows, columns)


def _config(about: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    def get(name: str) -> Any:
        return about[f"llama.{name}"]

    width, heads = int(get("embedding_length")), int(get("attention.head_count"))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": width,
        "head_dim": width // heads,
        "intermediate_size": int(get("feed_forward_length")),
        "max_position_embeddings": int(get("context_length")),
        "num_attention_heads": heads,
        "num_hidden_layers": int(get("block_count")),
        "num_key_value_heads": int(get("attention.head_count_kv")),
        "rms_norm_eps": float(get("attention.layer_norm_rms_epsilon")),
        "rope_theta": float(get("rope.freq_base")),
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "torch_dtype": "float16",
        "vocab_size": len(about["tokenizer.ggml.tokens"]),
        "bos_token_id": _id(about, "bos"),
        "eos_token_id": _id(about, "eos"),
    }


def _tokenizer(about: dict[str, Any]) -> Tokenizer:
    """Byte-level BPE that takes digits one by one, as SmolLM's does."""
    names, kinds = about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ", 1)) for merge in about["tokenizer.ggml.merges"]]
    vocabulary = {name: place for place, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [name for name, kind in zip(names, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in control])
    return tokenizer


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("source", type=Path, metavar="MODEL.gguf")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    convert(arguments.source, arguments.folder)


if __name__ == "__main__":
    main()
