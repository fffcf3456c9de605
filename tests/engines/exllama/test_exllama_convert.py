"""The default model as the ExLlama engines get it: the same text is the same tokens."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_tokenizer import FolderTokenizer
from hookline.engines.llama_model import LlamaModel

ROOT = Path(__file__).parents[3]
TEXTS = [
    "Hello there, how are you? I'll say we've 12345 + 678.",
    "<|im_start|>user\nWhat is \u00e9\U0001f600 \u65e5\u672c\u8a9e?<|im_end|>\n",
    "  two spaces\r\n\t\tdef f(x):\n\n\n    return x**2 \u0663\u0664 \u00bd",
]


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("gguf")
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "gpu"))
    return importlib.import_module("convert")


@pytest.mark.model
def test_the_tokenizer_of_a_gguf_stays_what_it_was(
    converter: ModuleType, model_path: Path, make_folder: Any
) -> None:
    from gguf import GGUFReader

    about = {name: field.contents() for name, field in GGUFReader(model_path).fields.items()}
    folder = make_folder("smol", vocab_size=49152)
    converter._tokenizer(about).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    ours = FolderTokenizer(ModelFolder.read(folder), "exllamav3")
    llama = LlamaModel(model_path, gpu_layers=0, repack=False, progress=lambda share: None)
    try:
        theirs = llama.vocabulary()
        for text in TEXTS:
            for special in (True, False):
                ids = ours.tokenize(text, special=special, bos=True)
                assert ids == llama.tokenize(text, special=special, bos=True)
                assert ours.detokenize(ids) == text
    finally:
        llama.close()
    assert ours.vocabulary().tokens == theirs.tokens
    assert ours.vocabulary().special == theirs.special
    assert ours.special_texts == llama.special_texts


def test_the_halves_of_each_head_are_parted(converter: ModuleType) -> None:
    """Row ``2 * i + half`` of a head in a GGUF is row ``half * n + i`` as published."""
    heads, size = 3, 8
    published = np.arange(heads * size, dtype=np.float32)[:, None]
    interleaved = np.concatenate(
        [
            published[head * size + half * size // 2 + place]
            for head in range(heads)
            for place in range(size // 2)
            for half in (0, 1)
        ]
    )[:, None]
    assert np.array_equal(converter._rows_as_published(interleaved, heads), published)


def test_parts_are_packed_within_the_size_of_a_transfer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "gpu"))
    prepare = importlib.import_module("prepare")
    monkeypatch.setattr(prepare, "PART", 10)
    (tmp_path / "model").write_bytes(bytes(range(35)))
    parts = prepare.split(tmp_path / "model", tmp_path / "parts")
    assert b"".join(part.read_bytes() for part in parts) == bytes(range(35))
    folders = prepare.pack(tmp_path, parts, 25)
    sizes = [[file.stat().st_size for file in sorted(folder.iterdir())] for folder in folders]
    assert sizes == [[10, 10], [10, 5]]
    with pytest.raises(SystemExit, match="larger than a transfer"):
        prepare.loads([tmp_path / "model"], 30)
