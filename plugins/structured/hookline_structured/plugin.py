"""The plugin: answers that follow a JSON schema, a regular expression or a grammar."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec

from hookline import (
    ConfigError,
    ConstraintSpec,
    Exchange,
    Grammar,
    InvalidRequest,
    Job,
    PluginError,
    Server,
    Stage,
    hookimpl,
)
from hookline_structured.compiler import Compiled, Compiler
from hookline_structured.fields import PARAM, StructuredFields, constraint_of
from hookline_structured.settings import StructuredSettings
from hookline_structured.validation import Validation

NAME = "structured"


class Structured:
    """Enforces ``response_format``, and compiles constraints for other plugins."""

    api = ">=1.0,<2"
    extras = frozenset({"structured"})
    settings_model = StructuredSettings
    request_fields = StructuredFields

    def __init__(self, settings: StructuredSettings) -> None:
        if settings.engine == "formatron" and find_spec("formatron") is None:
            raise ConfigError(
                '[plugin.structured] engine = "formatron" needs a package that is not installed; '
                "install it with: pip install 'hookline[formatron]'"
            )
        self._settings = settings
        self._compiler: Compiler | None = None
        self._server: Server | None = None

    @hookimpl
    def lifespan(self, server: Server) -> AbstractAsyncContextManager[None]:
        """Keeps the compiler while the server runs."""

        @asynccontextmanager
        async def alive() -> AsyncIterator[None]:
            compiler = self._compiler = Compiler(self._settings)
            self._server = server
            compiler.warm_up()
            try:
                yield
            finally:
                self._compiler = None
                await compiler.close()

        return alive()

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Compiles what is asked for, so that it is refused before anything costly happens."""
        spec = constraint_of(exchange.fields(StructuredFields).response_format)
        if spec is not None and self._server is not None:
            exchange.state[NAME] = await self._compile(spec, self._server)
            exchange.answer_format = spec

    @hookimpl
    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        """Puts the constraint on the job, unless another heeds it in its own. Raises InvalidRequest
        where another does not."""
        if exchange.answer_format is None:
            return
        if job.grammar is not None:
            raise InvalidRequest(
                f"'{PARAM}' cannot be combined with another constraint on the same answer.",
                param=PARAM,
            )
        job.grammar = exchange.state[NAME]

    @hookimpl
    def stage(self, exchange: Exchange, job: Job) -> Stage | None:
        """Validates the finished answer once more."""
        made = job.grammar
        if not isinstance(made, Compiled) or made.validator is None:
            return None
        return Validation(made.validator, made.grammar.end | job.stop_tokens, made.triggers)

    @hookimpl
    async def create_constraint(self, spec: ConstraintSpec, server: Server) -> Grammar | None:
        """Compiles a constraint for whoever asks. Raises InvalidRequest."""
        return await self._compile(spec, server)

    async def _compile(self, spec: ConstraintSpec, server: Server) -> Compiled:
        if self._compiler is None:
            raise PluginError("The plugin 'structured' was not started.")
        return await self._compiler.compile(spec, server.engine)
