"""From messages to the ids of a prompt: chat template, defused control tokens, context fitting."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hookline.engine import Card, Engine
from hookline.errors import ContextLengthExceeded, InvalidRequest, StartError
from hookline.hookspecs import hookimpl
from hookline.images import Image
from hookline.marks import Defuser, marked_images, tokenize
from hookline.messages import Message

GENERIC_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""For models that bring no template: plain names and text."""

RESERVED_VARIABLES = frozenset({"messages", "bos_token", "eos_token"})


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Jinja as chat templates expect it. The sandbox keeps a template from reaching Python."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        self.filters["tojson"] = _tojson
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = lambda form: clock().strftime(form)


class ChatTemplate:
    """The model's own chat template, or the one from the settings, as a plugin of the core."""

    def __init__(self, source: str | None, clock: Callable[[], datetime]) -> None:
        self.source = ""
        self._configured = source
        self._environment = TemplateEnvironment(clock)
        self._template = self._environment.from_string("")

    def use(self, card: Card) -> None:
        """Compiles the template for a model. Raises StartError when it is no valid Jinja."""
        self.source = self._configured or card.chat_template or GENERIC_TEMPLATE
        try:
            self._template = self._environment.from_string(self.source)
        except jinja2.TemplateSyntaxError as error:
            raise StartError(
                f"The chat template is not valid: line {error.lineno}: {error.message}."
            ) from error

    @hookimpl
    def render_prompt(
        self, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
    ) -> str:
        """Renders the template. Raises InvalidRequest where the template itself refuses."""
        try:
            return self._template.render({**variables, "messages": messages})
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
            raise InvalidRequest(
                f"The model's chat template does not accept this conversation: {error}",
                param="messages",
            ) from error


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that fits: its ids, the images in it, and how many old messages were left out."""

    ids: list[int]
    dropped: int
    images: tuple[Image, ...] = ()


Render = Callable[[Sequence[Mapping[str, Any]]], str]


def fit(engine: Engine, messages: Sequence[Message], render: Render) -> Prompt:
    """The prompt of a conversation, without as many of its oldest turns as it takes to fit.

    A turn is a user message with all that answers it: templates refuse half of one. System
    messages and everything from the last user message on stay. One token of the context is kept
    for the answer. The fewest turns that must go are found by bisection, since each try renders
    and tokenizes. Images go with their messages. Raises ContextLengthExceeded.
    """
    card = engine.card
    plain = _marked(messages, Defuser(card.special_tokens))
    images = _images(messages)
    turns = _turns(messages)

    def attempt(drop: int) -> _Attempt:
        gone = {place for turn in turns[:drop] for place in turn}
        kept = [message for place, message in enumerate(plain) if place not in gone]
        text = render(kept)
        _must_hold_images(text, kept)
        return _tokenized(engine, text, images)

    room = card.context - 1
    first = attempt(0)
    if first.needed <= room:
        return Prompt(first.ids, 0, first.images)
    shortest = attempt(len(turns)) if turns else first
    if shortest.needed > room:
        raise ContextLengthExceeded(
            f"This model's context is {card.context} tokens; the messages that must stay need "
            f"{shortest.needed} and one for the answer. Shorten them.",
            param="messages",
        )
    drop, best = _bisect(attempt, len(turns), shortest, room)
    return Prompt(best.ids, sum(len(turn) for turn in turns[:drop]), best.images)


class _Attempt(NamedTuple):
    """A prompt's ids and images, none where it is hopelessly long, and how many ids there are at
    least."""

    ids: list[int]
    images: tuple[Image, ...]
    needed: int


def _tokenized(engine: Engine, text: str, images: Sequence[Image]) -> _Attempt:
    card = engine.card
    least = len(text) // card.longest_token if card.longest_token else 0
    if least > card.context:
        return _Attempt([], (), least)
    ids, seen = tokenize(engine, text, images)
    return _Attempt(ids, seen, len(ids))


def _marked(messages: Sequence[Message], defuse: Defuser) -> list[dict[str, Any]]:
    """The messages for the template, their images marked by their places in the conversation."""
    plain, count = [], 0
    for message in messages:
        plain.append(defuse.message(message, count))
        count += len(message.images)
    return plain


def _images(messages: Sequence[Message]) -> list[Image]:
    """The pixels of all images. Raises InvalidRequest where there are none yet."""
    parts = [part for message in messages for part in message.images]
    pixels = [part.pixels for part in parts if part.pixels is not None]
    if len(pixels) < len(parts):
        raise InvalidRequest(
            "The conversation holds an image that no plugin has decoded.", param="messages"
        )
    return pixels


def _must_hold_images(text: str, kept: Sequence[Mapping[str, Any]]) -> None:
    """Refuses a template that leaves an image out, which would be lost without a word."""
    marked = {i for message in kept for i in marked_images(str(message["content"]))}
    if marked - set(marked_images(text)):
        raise InvalidRequest(
            "The model's chat template leaves out an image of this conversation: an image cannot "
            "be in a message of this kind.",
            param="messages",
        )


def _bisect(
    attempt: Callable[[int], _Attempt], most: int, shortest: _Attempt, room: int
) -> tuple[int, _Attempt]:
    """The fewest that must go, between none (too long) and ``most`` (fits), and what is left."""
    low, high, best = 0, most, shortest
    while high - low > 1:
        middle = (low + high) // 2
        tried = attempt(middle)
        if tried.needed <= room:
            high, best = middle, tried
        else:
            low = middle
    return high, best


def _turns(messages: Sequence[Message]) -> list[list[int]]:
    """The places of the messages that may go, oldest turn first."""
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    last = users[-1] if users else len(messages) - 1
    turns: list[list[int]] = []
    for place, message in enumerate(messages[:last]):
        if message.role in ("system", "developer"):
            continue
        if not turns or message.role == "user":
            turns.append([])
        turns[-1].append(place)
    return turns


def template_variables(
    card: Card, plugins: Mapping[str, Any], from_request: Mapping[str, Any]
) -> dict[str, Any]:
    """The variables of a template: the core's, then the plugins', then the request's own.

    Strings from the request are defused. Raises InvalidRequest for names that are not its to set.
    """
    if taken := RESERVED_VARIABLES & from_request.keys():
        raise InvalidRequest(
            f"'chat_template_kwargs': '{min(taken)}' cannot be set there.",
            param="chat_template_kwargs",
        )
    defuse = Defuser(card.special_tokens)
    return {
        "add_generation_prompt": True,
        "bos_token": card.bos,
        "eos_token": card.eos,
        **defuse.value(dict(plugins)),
        **defuse.value(dict(from_request)),
    }


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
