"""One request's life, as every hook sees it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from hookline.constraints import ConstraintSpec
from hookline.engine import Timings
from hookline.messages import Message

Fields = TypeVar("Fields", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking, as auth found out.

    ``id`` is stable and safe to store; ``name`` is for people; ``details`` belongs to the plugin
    that authenticated.
    """

    id: str = "anonymous"
    name: str = "anonymous"
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Usage:
    """Tokens of the whole request, all choices together."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def body(self) -> dict[str, Any]:
        """OpenAI's ``usage`` object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What a plugin is doing for a request: a ``phase`` such as ``search``, the ``step`` in it, and
    a ``detail`` for people."""

    phase: str
    step: str | None = None
    detail: str | None = None


@dataclass(slots=True)
class Exchange:
    """One request, from its body to its last byte.

    ``request`` is what was asked and stays as it came; ``messages`` is the working copy that
    transforms edit. ``sources`` are numbered by their place. ``state`` is for plugins to keep
    something between two of their hooks, by plugin name. ``warnings`` tell the client what is
    missing from its answer: each names a plugin, a hook and, as ``message``, what happened.
    ``paused`` are the plugins that are left out of this request, from its first hook to its last.
    ``answer_format`` is what text of the answer must match, set in `admit` by the plugin that
    promises it and taken away in `shape_job` by the one whose grammar of the job heeds it.
    """

    id: str
    created: int
    model: str
    request: BaseModel
    caller: Caller
    messages: list[Message] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    dropped_messages: int = 0
    max_ctx: int = 0
    sources: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    listener: Callable[[Report], None] | None = None
    warnings: list[dict[str, str]] = field(default_factory=list)
    paused: frozenset[str] | None = None
    answer_format: ConstraintSpec | None = None

    def report(self, phase: str, step: str | None = None, detail: str | None = None) -> None:
        """Tells a client that reads a stream what is being done for it.

        The first report of a request begins its stream: the headers are those known by then, and a
        refusal after it is an error event instead of a status. So report what takes seconds, and
        refuse before. Without a stream nobody listens, and nothing happens.
        """
        if self.listener is not None:
            self.listener(Report(phase, step, detail))

    def fields(self, model: type[Fields]) -> Fields:
        """The request seen as a plugin's own ``RequestFields``, typed.

        A kind of request that the fields are no part of (a raw completion) gives the defaults.
        """
        return self.request if isinstance(self.request, model) else model()

    def asks_for(self, model: type[BaseModel] | None) -> bool:
        """Whether the client set one of these fields to something other than its default or off."""
        if model is None or not isinstance(self.request, model):
            return False
        return any(
            name in self.request.model_fields_set
            and getattr(self.request, name) not in (field.default, None, False)
            for name, field in model.model_fields.items()
        )

    def add_source(self, source: dict[str, Any]) -> int:
        """Appends a source and returns its number, counted from 1 over all kinds."""
        index = len(self.sources) + 1
        self.sources.append({"index": index, **source})
        return index
