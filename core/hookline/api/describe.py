"""What a route says about itself for the reference page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

View = TypeVar("View", bound=Callable[..., Any])
ATTRIBUTE = "hookline_description"


@dataclass(frozen=True, slots=True)
class Description:
    """The models of a route's bodies; ``streams`` when it can answer as server-sent events.

    ``request_type`` is the media type of what is sent. ``others`` are the bodies of further
    statuses that are no errors of OpenAI's shape.
    """

    request: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    request_type: str = "application/json"
    content_type: str = "application/json"
    streams: bool = False
    generates: bool = False
    others: Mapping[str, type[BaseModel]] = field(default_factory=dict)


def describe(
    *,
    request: type[BaseModel] | None = None,
    response: type[BaseModel] | None = None,
    request_type: str = "application/json",
    content_type: str = "application/json",
    streams: bool = False,
    generates: bool = False,
    others: Mapping[str, type[BaseModel]] | None = None,
) -> Callable[[View], View]:
    """Describes a view; its docstring is the summary and the text.

    ``generates`` marks routes that the allowance counts.
    """

    def mark(view: View) -> View:
        about = Description(
            request, response, request_type, content_type, streams, generates, others or {}
        )
        setattr(view, ATTRIBUTE, about)
        return view

    return mark


def description(view: Callable[..., Any]) -> Description:
    """What a view says about itself; nothing known for one without a mark."""
    found: Description = getattr(view, ATTRIBUTE, Description())
    return found
