"""A plugin that implements every hook. The pages beside it show its methods; a test runs them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import click
import httpx
from pydantic import BaseModel, Field, SecretStr
from quart import Blueprint

from hookline import (
    Caller,
    ConstraintSpec,
    Delta,
    Document,
    Engine,
    Exchange,
    Grammar,
    InvalidRequest,
    Job,
    Message,
    Section,
    Server,
    Stage,
    StartError,
    Usage,
    hookimpl,
)
from hookline.config import ModelSettings

log = logging.getLogger(__name__)


class ExampleSettings(BaseModel):
    """``[plugin.example]``"""

    style: str = Field("Answer in capitals.", description="What the model is told.")
    badge: SecretStr | None = Field(None, description="A second way to say who is asking.")
    most_messages: int = Field(100, description="Longer conversations are refused.")
    most_tokens: int = Field(1000, description="Longest answer.")


class ExampleFields(BaseModel):
    """What the plugin adds to a request."""

    shout: bool = Field(False, description="Answer in capitals.")


class Shout:
    """A stage that turns the answer, but not the reasoning, into capitals."""

    def feed(self, delta: Delta) -> Iterable[Delta]:
        if delta.channel == "content":
            delta = replace(delta, text=delta.text.upper())
        yield delta

    def finish(self) -> Iterable[Delta]:
        return ()


class Letters:
    """Embeds a text as the counts of its letters a to z."""

    name = "letters"
    dimensions = 26
    max_tokens = 1_000_000

    def count(self, text: str) -> int:
        return len(text)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["query", "document"] = "document",
        usage: Usage | None = None,
    ) -> list[list[float]]:
        if usage is not None:
            usage.prompt_tokens += sum(map(self.count, texts))
        alphabet = "abcdefghijklmnopqrstuvwxyz"
        return [[float(text.lower().count(letter)) for letter in alphabet] for text in texts]


class Example:
    """Every hook once."""

    settings_model = ExampleSettings
    request_fields = ExampleFields

    def __init__(self, settings: ExampleSettings) -> None:
        self.settings = settings

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        async with httpx.AsyncClient(timeout=10) as self.http:  # closed like in a finally
            log.info("keeps its files in %s", server.data_dir / "example")
            yield

    @hookimpl
    def routes(self, server: Server) -> Blueprint:
        blueprint = Blueprint("example", __name__)

        @blueprint.get("/v1/example")
        async def about() -> dict[str, Any]:
            return {"style": self.settings.style, "model": server.engine.card.id}

        return blueprint

    @hookimpl
    def commands(self, cli: click.Group) -> None:
        @cli.command()
        def example() -> None:
            """Prints what the model is told."""
            click.echo(self.settings.style)

    @hookimpl
    def list_models(self, server: Server) -> Sequence[Mapping[str, Any]]:
        return [{"id": Letters.name, "kind": "embedding", "embeddings": True}]

    @hookimpl
    def create_engine(self, model: ModelSettings) -> Engine | None:
        if model.engine != "example":
            return None
        raise StartError("The engine 'example' needs hardware that this machine does not have.")

    @hookimpl
    async def authenticate(self, headers: Mapping[str, str]) -> Caller | None:
        badge = self.settings.badge
        if badge is None or headers.get("x-badge") != badge.get_secret_value():
            return None  # an API key may still do
        return Caller(id="example:badge", name="whoever wears the badge")

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        if len(exchange.messages) > self.settings.most_messages:
            raise InvalidRequest("The conversation is too long; start again.", param="messages")

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        if exchange.fields(ExampleFields).shout:
            exchange.messages.insert(0, Message(role="system", content=self.settings.style))

    @hookimpl
    def template_vars(self, exchange: Exchange) -> Mapping[str, Any] | None:
        return {"date_string": f"{datetime.fromtimestamp(exchange.created, UTC):%d %b %Y}"}

    @hookimpl
    def render_prompt(
        self, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
    ) -> str | None:
        if not variables.get("without_roles"):
            return None  # the model's own template writes the prompt
        return "\n\n".join(message["content"] for message in messages)

    @hookimpl
    def begin_answer(self, exchange: Exchange) -> str | None:
        return "HEAR ME: " if exchange.fields(ExampleFields).shout else None

    @hookimpl
    async def shape_job(self, job: Job) -> None:
        most = self.settings.most_tokens
        job.max_tokens = min(job.max_tokens or most, most)

    @hookimpl
    def stage(self, exchange: Exchange) -> Stage | None:
        return Shout() if exchange.fields(ExampleFields).shout else None

    @hookimpl
    def opening_fields(self, exchange: Exchange) -> Mapping[str, Any] | None:
        return {"shout": exchange.fields(ExampleFields).shout}

    @hookimpl
    def response_headers(self, exchange: Exchange) -> Mapping[str, str] | None:
        return {"X-Caller": exchange.caller.id}

    @hookimpl
    def closing_fields(self, exchange: Exchange) -> Mapping[str, Any] | None:
        return {"tokens_left": self.settings.most_tokens - exchange.usage.completion_tokens}

    @hookimpl
    async def settle(self, exchange: Exchange, error: BaseException | None) -> None:
        log.info("%s: %d tokens, %r", exchange.id, exchange.usage.completion_tokens, error)

    @hookimpl
    async def create_constraint(self, spec: ConstraintSpec) -> Grammar | None:
        if spec.kind == "regex" and len(spec.value) > 10_000:
            raise InvalidRequest("The regular expression is too long.", param=spec.param)
        return None  # the next plugin compiles it

    @hookimpl
    async def create_embedder(self, name: str) -> Letters | None:
        return Letters() if name == Letters.name else None

    @hookimpl
    async def parse_document(self, data: bytes, name: str) -> Document | None:
        if not name.endswith(".poem"):
            return None
        try:
            stanzas = data.decode().split("\n\n")
        except UnicodeDecodeError:
            raise InvalidRequest("A poem is written in UTF-8, and this is not.") from None
        sections = (Section(text, f"stanza {i}") for i, text in enumerate(stanzas, 1))
        return Document(name.removesuffix(".poem"), tuple(sections), "text/plain")
