"""The tokenizer of a folder of safetensors: text, ids, and the bytes of every token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hookline.engine import Vocabulary
from hookline.engines.exllama_folder import ModelFolder
from hookline.errors import MissingExtra, StartError

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "\u2581"


class FolderTokenizer:
    """``tokenizer.json`` through the library that wrote it. May be used from any thread.

    ``engine`` is the extra to name where that library is missing. Raises StartError where the
    folder's tokenizer cannot be used.
    """

    def __init__(self, folder: ModelFolder, engine: str) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtra("The tokenizer", engine, error.name) from error
        path = folder.path / "tokenizer.json"
        if not path.is_file():
            raise StartError(f"{folder.path} holds no tokenizer.json, which the engine needs")
        try:
            source = path.read_text(encoding="utf-8")
            self._written = Tokenizer.from_str(source)
            self._quoted = Tokenizer.from_str(source)
        except Exception as error:  # the library raises nothing narrower
            raise StartError(f"{path} cannot be used: {error}") from error
        for tokenizer in (self._written, self._quoted):
            tokenizer.no_truncation()
            tokenizer.no_padding()
        self._quoted.encode_special_tokens = True
        self._read_tokens(json.loads(source), folder)

    def _read_tokens(self, source: dict[str, Any], folder: ModelFolder) -> None:
        added = self._written.get_added_tokens_decoder()
        raws = dict(_raw_tokens(self._written.get_vocab(with_added_tokens=False), source))
        raws |= {token: about.content.encode() for token, about in added.items()}
        known = max(raws) + 1
        self.size = min(known, folder.vocabulary or known)
        self.raws = tuple(raws.get(token, b"") for token in range(self.size))
        named = self._written.token_to_id(folder.token("eos_token"))
        ends = folder.end_ids | ({named} if named is not None else set())
        self.end = frozenset(token for token in ends if token < self.size)
        marked = frozenset(token for token, about in added.items() if about.special)
        self.special = self.end | marked
        self.special_texts = tuple(about.content for about in added.values())
        self.longest = max(map(len, self.raws))
        self._begin = self._beginning()
        self.bos = self.raws[self._begin[0]].decode(errors="replace") if self._begin else ""
        self.eos = folder.token("eos_token")
        spaced = self._written.encode("a", add_special_tokens=False).ids
        self._adds_space = self._joined(spaced).startswith(b" ")

    def _beginning(self) -> list[int]:
        """What the tokenizer puts before a text."""
        plain = self._written.encode("a", add_special_tokens=False).ids
        whole = self._written.encode("a", add_special_tokens=True).ids
        places = range(len(whole) - len(plain) + 1)
        return next((whole[:i] for i in places if whole[i : i + len(plain)] == plain), [])

    def raw(self, token: int) -> bytes:
        """The bytes of one token, control tokens written out."""
        return self.raws[token]

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        """Text to ids. Half a surrogate pair, which UTF-8 cannot write, becomes ``?``."""
        clean = text.encode(errors="replace").decode()
        tokenizer = self._written if special else self._quoted
        ids: list[int] = tokenizer.encode(clean, add_special_tokens=False).ids if clean else []
        return self._begin + ids if bos else ids

    def detokenize(self, ids: Sequence[int]) -> str:
        """Ids to text, control tokens written out. The space that some tokenizers put before a
        text is taken away again. Raises ValueError for an id outside the vocabulary."""
        wrong = next((i for i in ids if not 0 <= i < self.size), None)
        if wrong is not None:
            raise ValueError(f"token {wrong} is not in the vocabulary of {self.size}")
        raw = self._joined(ids)
        return raw.removeprefix(b" " if self._adds_space else b"").decode(errors="replace")

    def _joined(self, ids: Sequence[int]) -> bytes:
        return b"".join(map(self.raw, ids))

    def vocabulary(self) -> Vocabulary:
        """All tokens."""
        return Vocabulary(self.raws, self.special, self.end)


def _raw_tokens(names: dict[str, int], source: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
    """The bytes of tokens by id: written with a letter for each byte, or as text with a mark for
    the space and ``<0x0A>`` for single bytes."""
    parts = json.dumps([source.get("decoder"), source.get("pre_tokenizer")])
    if '"ByteLevel"' in parts:
        letters = _letters()
        for name, token in names.items():
            known = all(letter in letters for letter in name)
            yield token, bytes(letters[letter] for letter in name) if known else name.encode()
        return
    for name, token in names.items():
        byte = _BYTE.fullmatch(name)
        yield token, bytes([int(byte[1], 16)]) if byte else name.replace(_SPACE, " ").encode()


def _letters() -> dict[str, int]:
    """The letter of each byte in byte-level vocabularies (GPT-2's): printable Latin-1 stands for
    itself, the others follow in order from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {chr(0x100 + place): byte for place, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | shifted
