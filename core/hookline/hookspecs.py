"""THE CONTRACT: every hook a plugin can implement.

A plugin is a class. Its constructor takes its validated settings (or nothing), its methods are
marked `hookimpl` and take any subset of the arguments below, by name. The order of ``plugins`` in
the configuration is the order of calls.

Kinds of hooks:

* *all*: every plugin is called, in order.
* *first answer*: called in order until one returns something other than None.

A hook is ``def`` or ``async def`` as written here; the loader refuses the other colour. Nothing
here runs per token: `stage` returns an object that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pluggy

from hookline.config import ModelSettings
from hookline.constraints import ConstraintSpec
from hookline.documents import Document
from hookline.engine import Engine, Grammar, Job
from hookline.exchange import Caller, Exchange
from hookline.server import Embedder, Server
from hookline.stream import Stage

if TYPE_CHECKING:
    import click
    from quart import Blueprint

API_VERSION = "1.0"
"""The version of this contract. The second number grows with what it adds, the first with what it
takes away or changes; plugins name the range that they fit in ``api``."""

hookspec = pluggy.HookspecMarker("hookline")
hookimpl = pluggy.HookimplMarker("hookline")
"""Marks a plugin's method as the implementation of the hook of the same name."""


class Hooks:
    """The specifications. Only names, arguments and meaning count; nothing here is called."""

    # Once a process

    @hookspec
    def lifespan(self, server: Server) -> AbstractAsyncContextManager[None]:
        """Opens and closes what the plugin needs while the server runs. *All.*

        Entered in plugin order before the first request, left in reverse. Write clean-up in
        ``finally``: when a later plugin fails to start, the exception is thrown into the earlier
        ones. Raising refuses the start of this plugin only, unless it is essential.
        """
        raise NotImplementedError

    @hookspec
    def routes(self, server: Server) -> Blueprint:
        """Adds HTTP routes as a Quart blueprint. *All.*

        Every route asks for a key like the core's own. Errors from the `ApiError` tree become
        OpenAI's error body.
        """
        raise NotImplementedError

    @hookspec
    def commands(self, cli: click.Group) -> None:
        """Adds commands to ``hookline`` with ``@cli.command()``. *All.*"""

    @hookspec
    def list_models(self, server: Server) -> Sequence[Mapping[str, Any]]:
        """Models for ``GET /v1/models`` besides the loaded one. *All.*

        Each mapping has at least ``id``; further keys join the ``hookline`` object of the entry.
        With the id of a model that is listed already, the loaded one say, they join its entry: so a
        plugin tells what it makes a model able to do.
        """
        raise NotImplementedError

    @hookspec(firstresult=True)
    def create_engine(self, model: ModelSettings) -> Engine | None:
        """Makes the engine for a model, not yet loaded. *First answer.*

        Return None where ``model.engine`` and ``model.source`` are not yours. Raise StartError
        where they are and cannot be used.
        """

    # Once a request, in this order

    @hookspec(firstresult=True)
    async def authenticate(self, headers: Mapping[str, str], address: str) -> Caller | None:
        """Says who is asking. *First answer.*

        ``headers`` have lower-case names; ``address`` is the peer's. None leaves the question to
        the next plugin; InvalidApiKey refuses.
        """

    @hookspec
    async def admit(self, exchange: Exchange) -> None:
        """May refuse the request by raising, before anything costly happens. *All.*"""

    @hookspec
    async def transform(self, exchange: Exchange) -> None:
        """Edits ``exchange.messages`` and adds sources. *All.*

        The one hook that may take long. Raising from the `ApiError` tree refuses the request.
        """

    @hookspec
    def template_vars(self, exchange: Exchange) -> Mapping[str, Any] | None:
        """Variables for the chat template. *All*, a later plugin's win over an earlier one's."""

    @hookspec(firstresult=True)
    def render_prompt(
        self,
        exchange: Exchange,
        messages: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
    ) -> str | None:
        """Writes the conversation as the model's prompt text. *First answer.*

        ``messages`` are plain mappings that already fit the context; control tokens that a client
        typed are defused in them, and where an image is their ``content`` holds a mark, which must
        come into the text. Called in a thread, perhaps several times with fewer messages each time;
        must depend on its arguments only.
        """

    @hookspec
    def begin_answer(self, exchange: Exchange, prompt: str) -> str | None:
        """Text with which the answer begins, such as the tag of a thought. *All*, joined.

        It is appended to ``prompt``, the rendered text with what plugins before this one begin the
        answer with, and is part of the prompt; control tokens written out in it are such tokens.
        Called like `render_prompt`: in a thread, perhaps several times; must depend on its
        arguments only.
        """

    @hookspec
    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        """Edits the job: grammar, stop tokens, sampling, images. *All.*"""

    @hookspec
    def stage(self, exchange: Exchange, job: Job) -> Stage | None:
        """A stage for one choice of the answer. *All*, once a choice, run in plugin order."""

    @hookspec
    def opening_fields(self, exchange: Exchange) -> Mapping[str, Any] | None:
        """Fields for the first chunk, or for the body of a plain answer. *All.*"""

    @hookspec
    def response_headers(self, exchange: Exchange) -> Mapping[str, str] | None:
        """HTTP headers of the answer, before its first byte. *All.*"""

    @hookspec
    def closing_fields(self, exchange: Exchange) -> Mapping[str, Any] | None:
        """Fields for the last chunk, or for the body of a plain answer. *All.*"""

    @hookspec
    async def settle(self, exchange: Exchange, error: BaseException | None) -> None:
        """The request is over, in whatever way; runs in ``finally``. *All.*

        ``error`` is the refusal, the failure, or CancelledError when the client left.
        """

    # Services that plugins give each other

    @hookspec(firstresult=True)
    async def create_constraint(self, spec: ConstraintSpec, server: Server) -> Grammar | None:
        """Compiles a constraint. *First answer.* Raise InvalidRequest when it cannot be used."""

    @hookspec(firstresult=True)
    async def create_embedder(self, name: str, server: Server) -> Embedder | None:
        """Makes an embedder by name; ``""`` means the default. *First answer.*"""

    @hookspec(firstresult=True)
    async def parse_document(
        self, data: bytes, name: str, media_type: str | None, server: Server
    ) -> Document | None:
        """Reads a file as text with places in it. *First answer.*

        ``name`` is the file's name or address and may be wrong, as may ``media_type``, which is
        what its sender declared. Raise InvalidRequest with the reason for a file that cannot be
        read: broken, encrypted, a bomb.
        """
