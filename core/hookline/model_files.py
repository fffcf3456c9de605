"""Which of the files of a folder or repository is the model that is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from hookline.errors import StartError

Format = Literal["gguf", "safetensors"]
"""How a model is stored: in one file (that may be split), or as a folder of files."""

QUANTIZATIONS = (
    *("Q4_K_M", "Q4_K_S", "IQ4_XS", "IQ4_NL", "Q4_1", "Q4_0"),
    *("Q5_K_M", "Q5_K_S", "Q6_K", "Q8_0", "BF16", "F16", "F32"),
)
"""Which quantization of a repository is taken when none is named: the first that is there.

Four bits are the best trade of size against quality for most models; below, quality falls fast.
"""

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf$)", re.IGNORECASE)
_QUANTIZED = re.compile(r"[-_.]?(bf16|fp?16|fp?32|i?q[0-9]+(_[a-z0-9]+)*)(?=\.gguf$)")
_NO_MODEL = re.compile(r"(mmproj|imatrix)[^/]*$")


def group_files(names: Iterable[str]) -> dict[str, list[str]]:
    """The model files among names; those of a split model together.

    Image projectors and importance matrices are no models. The key is the name, for a split model
    without the numbers.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.lower().endswith(".gguf") and not _NO_MODEL.search(name.lower()):
            groups.setdefault(group_name(name), []).append(name)
    return groups


def group_name(name: str) -> str:
    """A file's name without its number in a split model."""
    return _SHARD.sub("", name)


def is_complete(shards: list[str]) -> bool:
    """Whether all files of a model are there."""
    number = _SHARD.search(shards[0])
    return number is None or len(shards) == int(number[2])


def named(groups: Mapping[str, list[str]], wanted: str) -> list[str] | None:
    """The model with that file name, else the first with that quantization."""
    low = wanted.lower()
    for name, shards in groups.items():
        if low in (name.lower(), name.lower().rpartition("/")[2], shards[0].lower()):
            return shards
    tag = re.compile(rf"(?<![a-z0-9]){re.escape(low)}(?![a-z0-9_])")
    return next((shards for name, shards in groups.items() if tag.search(name.lower())), None)


def chosen(
    repo: str, groups: Mapping[str, list[str]], wanted: str, sizes: Mapping[str, int]
) -> list[str]:
    """The files of the model that is wanted, or the best default of a repository."""
    if not groups:
        raise StartError(no_gguf(repo, sizes))
    if wanted:
        model = named(groups, wanted)
        if model is None:
            raise StartError(f"{repo} has no '{wanted}'. It has: {listed(groups)}")
        return model
    if len(groups) == 1:
        return next(iter(groups.values()))
    preferred = (named(groups, tag) for tag in QUANTIZATIONS)
    smallest = min(groups.values(), key=lambda model: sum(sizes.get(shard, 0) for shard in model))
    return next(filter(None, preferred), smallest)


def no_gguf(where: str, names: Iterable[str]) -> str:
    """Why nothing of a repository or folder can be loaded."""
    if any(name.endswith(".safetensors") for name in names):
        return (
            f"{where} holds safetensors, not GGUF: that needs an ExLlama engine and an NVIDIA GPU "
            '(engine = "exllamav2" or "exllamav3" in [model]), or a GGUF of the model'
        )
    return f"{where} holds no .gguf file"


def no_folder_model(where: str, names: Iterable[str]) -> str:
    """Why no folder of safetensors is there."""
    every = list(names)
    if group_files(every):
        return f"{where} holds GGUF, which the llama.cpp engine reads, and no safetensors"
    return (
        f"{where} holds no model: neither .gguf files nor config.json with .safetensors files. "
        "Where quantizations are branches, name one: owner/repo:branch"
    )


def is_folder_model(names: Iterable[str]) -> bool:
    """Whether the files of a folder or repository are a model as safetensors."""
    return bool(folder_files(names))


def folder_files(names: Iterable[str]) -> list[str]:
    """What is needed of a folder or repository that holds a model as safetensors, nothing if it
    holds none: weights at its top, once, and the small files beside them."""
    top = sorted(name for name in names if "/" not in name)
    weights = [name for name in top if name.endswith(".safetensors")]
    weights = [name for name in weights if not name.startswith("consolidated")] or weights
    if not weights or "config.json" not in top:
        return []
    return weights + [name for name in top if name.endswith((".json", ".jinja", ".model", ".txt"))]


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message."""
    every = sorted(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def projector(names: Iterable[str], model: str | None = None) -> str | None:
    """The image projector among files; of several the one in 16-bit floats, else the first.

    Where the files are of several models, ``model`` is the one that it is for: it then bears that
    name, or none (``mmproj-F16.gguf``).
    """
    found = sorted(name for name in names if is_projector(name) and name.lower().endswith(".gguf"))
    if model is not None:
        mine = [name for name in found if _whose(name) and _whose(name) in _plain(model)]
        found = mine or [name for name in found if not _whose(name)]
    half = (name for name in found if re.search(r"(?<!b)f16", name.lower()))
    return next(half, found[0] if found else None)


def _whose(name: str) -> str:
    """The model's name in the name of a projector; "" where there is none."""
    words = re.split(r"[^a-z0-9]+", _QUANTIZED.sub("", name.lower().rpartition("/")[2]))
    return "".join(word for word in words if word not in ("mmproj", "model", "gguf"))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().rpartition("/")[2].removesuffix(".gguf"))


def is_projector(name: str) -> bool:
    """Whether a file is an image projector, by its name."""
    return "mmproj" in name.lower().rpartition("/")[2]
