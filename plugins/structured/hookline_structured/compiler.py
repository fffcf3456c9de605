"""From a spec to a compiled constraint: analysed in a process, compiled in a thread, kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import llguidance

from hookline import Constraint, ConstraintSpec, Engine, InvalidRequest
from hookline_structured import formatron_engine
from hookline_structured.analysis import Analysis
from hookline_structured.analyst import Analysts, TooLong
from hookline_structured.canonical import validator
from hookline_structured.dialect import Schema
from hookline_structured.either import EitherGrammar
from hookline_structured.formatron_engine import FormatronGrammar
from hookline_structured.grammar import CompileError, LLGrammar
from hookline_structured.options import json_source
from hookline_structured.pattern import NotRegular, translate
from hookline_structured.refusal import Place, Refused
from hookline_structured.settings import StructuredSettings
from hookline_structured.tagged import read_tagged
from hookline_structured.tokens import Tokens

log = logging.getLogger(__name__)

AnyGrammar = LLGrammar | FormatronGrammar | EitherGrammar


@dataclass(frozen=True, slots=True)
class Compiled:
    """A `Grammar`; ``validator`` decides about the finished answer where that is JSON, unless it
    begins with one of ``triggers``."""

    grammar: AnyGrammar
    validator: jsonschema_rs.Validator | None = None
    triggers: tuple[str, ...] = ()

    def start(self) -> Constraint:
        """A fresh constraint for one answer."""
        return self.grammar.start()


class Compiler:
    """Compiles constraints for the loaded model and keeps the last ones by their content.

    One event loop only. ``close`` it.
    """

    def __init__(self, settings: StructuredSettings) -> None:
        self._settings = settings
        self._compact = settings.whitespace == "compact"
        self._analysts = Analysts(settings.compile_seconds)
        self._masks = ThreadPoolExecutor(2, thread_name_prefix="masks")
        self._kept: OrderedDict[bytes, asyncio.Task[Compiled]] = OrderedDict()
        self._tokens: tuple[Engine, asyncio.Task[Tokens]] | None = None
        self._warming: asyncio.Task[None] | None = None

    async def compile(self, spec: ConstraintSpec, engine: Engine) -> Compiled:
        """Raises InvalidRequest with the place of what cannot be used."""
        place = str(spec.options.get("place", spec.param or "constraint"))
        try:
            return await self._once(_key(spec), self._compile(spec, engine))
        except Refused as error:
            raise InvalidRequest(error.message(place), param=spec.param) from None
        except TooLong:
            raise InvalidRequest(
                f"'{place}': it takes more than {self._settings.compile_seconds:g} s or too much "
                "memory to analyse; simplify it.",
                param=spec.param,
            ) from None

    async def _once(self, key: bytes, work: Coroutine[Any, Any, Compiled]) -> Compiled:
        """Does the same work once, however many ask at the same time, and keeps the result."""
        task = self._kept.get(key)
        if task is None:
            task = self._kept[key] = asyncio.create_task(work)
            task.add_done_callback(lambda done: self._forget_accidents(key, done))
        else:
            work.close()
        self._kept.move_to_end(key)
        while len(self._kept) > self._settings.cache_size:
            self._kept.popitem(last=False)
        # Whoever asked first may leave; the others still wait.
        return await asyncio.shield(task)

    def _forget_accidents(self, key: bytes, task: asyncio.Task[Compiled]) -> None:
        """Keeps refusals, which would come again, but not what went wrong otherwise."""
        accident = task.cancelled() or not isinstance(task.exception(), Refused | TooLong | None)
        if accident and self._kept.get(key) is task:
            del self._kept[key]

    async def _compile(self, spec: ConstraintSpec, engine: Engine) -> Compiled:
        tokens = await self._tokens_of(engine)
        if spec.kind == "tagged":
            return await self._tagged(spec.value, tokens)
        return await self._plain(spec.kind, spec.value, tokens)

    async def _plain(self, kind: str, value: Any, tokens: Tokens) -> Compiled:
        if kind == "json_schema":
            analysis = await self._analysts.schema(value)
            if self._settings.engine == "formatron" and self._suits_formatron(analysis):
                return await self._formatron(analysis, tokens)
            source = json_source(analysis.grammar, compact=self._compact)
            return await asyncio.to_thread(self._build, source, tokens, analysis.promise)
        source = _source(kind, value)
        await self._analysts.source(source)
        return await asyncio.to_thread(self._build, source, tokens)

    def _suits_formatron(self, analysis: Analysis) -> bool:
        suits = self._compact and formatron_engine.within(analysis.promise)
        if not suits:
            log.info("a schema is outside of what formatron gets right; llguidance enforces it")
        return suits

    async def _formatron(self, analysis: Analysis, tokens: Tokens) -> Compiled:
        """Tried in a process that can be stopped before it is compiled in this one."""
        source = await self._analysts.formatron(analysis.promise, tokens.texts())
        grammar = await asyncio.to_thread(formatron_engine.FormatronGrammar, source, tokens)
        return Compiled(grammar, validator(analysis.promise))

    async def _tagged(self, value: Any, tokens: Tokens) -> Compiled:
        tagged = read_tagged(value)
        # One after the other: starting more analysts takes longer than what they would save.
        schemas = {at: await self._part(schema, at) for at, schema in tagged.schemas()}
        # The analyst has no vocabulary: for it the control tokens are texts.
        await self._analysts.source(_lark(tagged.source(schemas, {}, compact=self._compact)))
        source = _lark(tagged.source(schemas, tokens.special, compact=self._compact))
        is_json = not tagged.is_free  # free text has quotes and digits of its own
        compiled = await asyncio.to_thread(self._build, source, tokens, is_json=is_json)
        if tagged.otherwise is None:
            return compiled
        kind, value = tagged.otherwise
        other = await self._plain(kind, value, tokens)
        _tell_apart(other.grammar, tagged.triggers)
        either = EitherGrammar(compiled.grammar, other.grammar)
        return Compiled(either, other.validator, tagged.triggers)

    async def _part(self, schema: Any, place: Place) -> Schema:
        try:
            return (await self._analysts.schema(schema)).grammar
        except Refused as error:
            raise Refused((*place, *error.place), error.reason) from error

    def _build(
        self,
        source: str,
        tokens: Tokens,
        promise: Schema | None = None,
        *,
        is_json: bool = False,
    ) -> Compiled:
        is_json = is_json or promise is not None
        try:
            grammar = LLGrammar(source, tokens, self._masks, is_json=is_json)
        except CompileError as error:
            raise Refused((), str(error)) from error
        return Compiled(grammar, None if promise is None else validator(promise))

    async def _tokens_of(self, engine: Engine) -> Tokens:
        """The engine's vocabulary, prepared once."""
        if self._tokens is None or self._tokens[0] is not engine or _failed(self._tokens[1]):
            self._forget_other_engine()
            self._tokens = engine, asyncio.create_task(asyncio.to_thread(Tokens.of, engine))
        return await asyncio.shield(self._tokens[1])

    def _forget_other_engine(self) -> None:
        for key in [key for key, task in self._kept.items() if task.done()]:
            del self._kept[key]

    def warm_up(self) -> None:
        """Makes an analyst ready in the background."""
        self._warming = asyncio.create_task(self._analysts.start())

    async def close(self) -> None:
        """Ends tasks, processes and threads."""
        tasks = [task for task in (*self._kept.values(), self._warming) if task and not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._analysts.close()
        self._masks.shutdown()


def _failed(task: asyncio.Task[Tokens]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _key(spec: ConstraintSpec) -> bytes:
    """Same key, same constraint. Keys are in the order of the client, which means something."""
    try:
        text = json.dumps([spec.kind, spec.value])
    except RecursionError:
        raise Refused((), "it is nested too deeply") from None
    return hashlib.sha256(text.encode()).digest()


def _source(kind: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Refused((), "must be a string")
    if kind == "grammar":
        return _lark(value)
    try:
        return llguidance.LLMatcher.grammar_from_regex(translate(value))
    except NotRegular as error:
        raise Refused((), str(error)) from error


def _tell_apart(text: AnyGrammar, triggers: Sequence[str]) -> None:
    """Raises Refused where text could begin with a trigger. What formatron is asked for cannot."""
    for trigger in triggers:
        if isinstance(text, LLGrammar) and text.may_begin(trigger):
            raise Refused(
                (),
                f"text that it allows can begin with {trigger!r}, as a call of a tool does; the "
                "two could not be told apart. Let it begin otherwise, or leave the tools out",
            )


def _lark(text: str) -> str:
    return llguidance.LLMatcher.grammar_from_lark(text)
