"""What a plugin can ask of the running process. `hookline.kernel` fulfils it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from hookline.config import Settings
from hookline.constraints import ConstraintSpec
from hookline.documents import Document
from hookline.engine import Engine, Grammar
from hookline.exchange import Exchange, Usage
from hookline.messages import Message


class Embedder(Protocol):
    """Turns texts into vectors of one length.

    ``name`` tells its vectors from those of other models: vectors of one name can be compared.
    ``max_tokens`` is what it reads of one text; it does not see what is beyond.
    """

    name: str
    dimensions: int
    max_tokens: int

    def count(self, text: str) -> int:
        """How many tokens a text has, quickly; an estimate where the model does not tell."""
        ...

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["query", "document"] = "document",
        usage: Usage | None = None,
    ) -> list[list[float]]:
        """One vector a text, in order. What was read is added to ``usage.prompt_tokens``.

        Queries come before documents that wait. Cancelling ends it.
        """
        ...


Clock = Callable[[], datetime]
"""Tells the time, in the zone whose midnight counts. Tests bring their own."""


class Server(Protocol):
    """Settings, engine and plugins of one running process."""

    settings: Settings
    clock: Clock

    @property
    def data_dir(self) -> Path:
        """Where files that must survive live; exists."""
        ...

    @property
    def engine(self) -> Engine:
        """The loaded engine. Raises NoModel (503) while there is none."""
        ...

    @property
    def chat_template(self) -> str:
        """The source of the chat template in use: from the settings, the model's own, or plain
        names and text where there is neither. Empty while no model is loaded."""
        ...

    @property
    def stopping(self) -> bool:
        """Whether nothing new is taken, and what runs is waited for: work in the background that
        can go on after the next start should make room."""
        ...

    def answers(self, hook: str, **arguments: Any) -> list[Any]:
        """Calls a hook that a plugin added, in plugin order: every answer that is not None.

        A plugin that fails in it is left out, logged and counted.
        """
        ...

    async def constraint(self, spec: ConstraintSpec) -> Grammar:
        """Compiles a constraint through whichever plugin can. Raises InvalidRequest when the spec
        cannot be used, and when no plugin answers."""
        ...

    async def embedder(self, name: str | None = None) -> Embedder | None:
        """An embedder by name, or the default one; None when no plugin has one."""
        ...

    async def parse_document(
        self, data: bytes, name: str, media_type: str | None = None
    ) -> Document | None:
        """Reads a file through whichever plugin can; None when no plugin can read its kind.

        Raises InvalidRequest with the reason where the file itself is at fault.
        """
        ...

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        grammar: Grammar | None = None,
        max_tokens: int = 256,
        temperature: float = 0.0,
        exchange: Exchange | None = None,
    ) -> str:
        """Asks the model for a plugin: same queue and cancel, no allowance, no usage.

        ``exchange`` is the request that it is asked for. Where ``messages`` begin like that one's,
        the engine reads their beginning once, also where tools stand before it.
        """
        ...
