"""What the servers differ in: how text becomes tokens, and what they tell about the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import httpx


class Dialect(Protocol):
    """One kind of server."""

    name: str

    def tokenize(self, http: httpx.Client, text: str, *, special: bool) -> list[int]:
        """Text to token ids; ``special``: control tokens written out in it are meant."""
        ...

    def detokenize(self, http: httpx.Client, ids: Sequence[int]) -> str:
        """Token ids to text."""
        ...

    def template(self, http: httpx.Client) -> str | None:
        """The chat template, where the server tells it."""
        ...


class LlamaServer:
    """llama.cpp's server."""

    name = "llama-server"

    def tokenize(self, http: httpx.Client, text: str, *, special: bool) -> list[int]:
        """Asks ``/tokenize``."""
        body = {"content": text, "add_special": False, "parse_special": special}
        return _ids(_ask(http, "/tokenize", body)["tokens"])

    def detokenize(self, http: httpx.Client, ids: Sequence[int]) -> str:
        """Asks ``/detokenize``."""
        return str(_ask(http, "/detokenize", {"tokens": list(ids)})["content"])

    def template(self, http: httpx.Client) -> str | None:
        """``/props`` has it."""
        template = http.get("/props").raise_for_status().json().get("chat_template")
        return str(template) if template else None


class VLLM:
    """vLLM's server. It takes control tokens in any text for what they are."""

    name = "vllm"

    def tokenize(self, http: httpx.Client, text: str, *, special: bool) -> list[int]:
        """Asks ``/tokenize``."""
        body = {"prompt": text, "add_special_tokens": False}
        return _ids(_ask(http, "/tokenize", body)["tokens"])

    def detokenize(self, http: httpx.Client, ids: Sequence[int]) -> str:
        """Asks ``/detokenize``."""
        return str(_ask(http, "/detokenize", {"tokens": list(ids)})["prompt"])

    def template(self, http: httpx.Client) -> str | None:
        """It keeps its own to itself."""
        return None


class Hookline:
    """Another Hookline."""

    name = "hookline"

    def tokenize(self, http: httpx.Client, text: str, *, special: bool) -> list[int]:
        """Asks ``/v1/tokenize``."""
        return _ids(_ask(http, "/v1/tokenize", {"text": text, "special": special})["ids"])

    def detokenize(self, http: httpx.Client, ids: Sequence[int]) -> str:
        """Asks ``/v1/detokenize``."""
        return str(_ask(http, "/v1/detokenize", {"ids": list(ids)})["text"])

    def template(self, http: httpx.Client) -> str | None:
        """It keeps its own to itself."""
        return None


DIALECTS: Sequence[Dialect] = (LlamaServer(), VLLM(), Hookline())


def find(http: httpx.Client, kind: str) -> Dialect:
    """The dialect of that name, or the first that the server understands.

    Raises LookupError where it understands none; httpx.HTTPError where it cannot be reached.
    """
    for dialect in DIALECTS:
        if kind in (dialect.name, "auto") and _understands(http, dialect):
            return dialect
    wanted = "any server known here" if kind == "auto" else kind
    raise LookupError(f"it does not answer /tokenize or /v1/tokenize as {wanted} does")


def _understands(http: httpx.Client, dialect: Dialect) -> bool:
    try:
        return bool(dialect.tokenize(http, "a", special=False))
    except (httpx.HTTPStatusError, KeyError, ValueError):
        return False


def _ask(http: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = http.post(path, json=body).raise_for_status().json()
    return answer


def _ids(tokens: Sequence[Any]) -> list[int]:
    return [int(token) for token in tokens]
