"""What is read of a folder of safetensors, and its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, processors

from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_tokenizer import FolderTokenizer
from hookline.errors import StartError


def test_a_folder_says_what_its_model_is(make_folder: Any) -> None:
    folder = ModelFolder.read(make_folder(eos_token_id=[5, 6]))
    assert (folder.context, folder.quantization) == (4096, None)
    assert folder.end_ids == {0, 2, 5, 6}
    assert folder.size == folder.weights[0].stat().st_size
    inner = {"text_config": {"max_position_embeddings": 99, "vocab_size": 7}}
    nested = make_folder("nested", max_position_embeddings=None, vocab_size=None, **inner)
    assert ModelFolder.read(nested).context == 99
    assert ModelFolder.read(nested).vocabulary == 7


@pytest.mark.parametrize(
    ("file", "content", "template"),
    [
        ("chat_template.jinja", "one", "one"),
        ("chat_template.json", {"chat_template": "two"}, "two"),
        ("tokenizer_config.json", {"chat_template": "three"}, "three"),
        (
            "tokenizer_config.json",
            {
                "chat_template": [
                    {"name": "rag", "template": "x"},
                    {"name": "default", "template": "4"},
                ]
            },
            "4",
        ),
        ("tokenizer_config.json", {}, None),
    ],
)
def test_the_chat_template_may_be_in_several_places(
    folder: Path, file: str, content: Any, template: str | None
) -> None:
    (folder / "chat_template.jinja").unlink()
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / file).write_text(text)
    assert ModelFolder.read(folder).chat_template == template


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, r"config\.json cannot be read: No such file"),
        ("config.json", b"{", r"config\.json is no JSON"),
        ("config.json", b"[]", r"config\.json holds no JSON object"),
        ("generation_config.json", b"x", r"generation_config\.json is no JSON"),
        ("model.safetensors", None, r"holds no \.safetensors file"),
        ("model.safetensors", b"\xff" * 20, r"is no readable safetensors file: a header of"),
        ("model.safetensors", b"\x05\0\0\0\0\0\0\0{{{{{", "is no readable safetensors file"),
        ("tokenizer.json", None, r"holds no tokenizer\.json"),
        ("tokenizer.json", b"{}", r"tokenizer\.json cannot be used"),
    ],
)
def test_a_broken_folder_is_told(
    folder: Path, file: str, content: bytes | None, message: str
) -> None:
    (folder / file).unlink() if content is None else (folder / file).write_bytes(content)
    with pytest.raises(StartError, match=message) as error:
        read = ModelFolder.read(folder)
        assert read.quantization is None
        FolderTokenizer(read, "exllamav3")
    assert "\n" not in str(error.value)


def spaced_tokenizer() -> str:
    """As Llama 2's: a mark for the space, bytes written out, a begin token before every text."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["\u2581", "a", "b", "\u2581a"]
    merges = [("\u2581", "a")]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    model = models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return str(tokenizer.to_str())


def test_a_tokenizer_with_spaces_and_bytes_written_out(make_folder: Any) -> None:
    folder = make_folder("spaced", vocab_size=263)
    (folder / "tokenizer.json").write_text(spaced_tokenizer())
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    tokenizer = FolderTokenizer(ModelFolder.read(folder), "exllamav2")
    text = "a b\u00e9"
    ids = tokenizer.tokenize(text, special=False, bos=True)
    assert ids[0] == 1 and tokenizer.bos == "<s>"
    assert tokenizer.detokenize(ids[1:]) == text
    assert b"".join(map(tokenizer.raw, ids[1:])) == b" a b\xc3\xa9"
    assert tokenizer.tokenize("", special=True, bos=True) == [1]
    assert tokenizer.tokenize("</s>", special=True, bos=False)[-1] == 2
    assert 2 not in tokenizer.tokenize("</s>", special=False, bos=False)
    assert (tokenizer.eos, tokenizer.end >= {2}) == ("</s>", True)


def test_tokens_that_the_model_does_not_have_are_none(make_folder: Any) -> None:
    folder = ModelFolder.read(make_folder(vocab_size=270))
    tokenizer = FolderTokenizer(folder, "exllamav3")
    assert tokenizer.size == len(tokenizer.vocabulary().tokens) == 270


def test_half_a_surrogate_pair_is_no_reason_to_fail(folder: Path) -> None:
    tokenizer = FolderTokenizer(ModelFolder.read(folder), "exllamav3")
    ids = tokenizer.tokenize("a\ud800b", special=True, bos=False)
    assert tokenizer.detokenize(ids) == "a?b"
