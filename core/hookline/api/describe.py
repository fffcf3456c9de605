"""What a route says about itself for the reference page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

View = TypeVar("View", bound=Callable[..., Any])
ATTRIBUTE = "hookline_description"


@dataclass(frozen=True, slots=True)
class Description:
    """The models of a route's bodies; ``streams`` when it can answer as server-sent events."""

    request: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    content_type: str = "application/json"
    streams: bool = False
    generates: bool = False


def describe(
    *,
    request: type[BaseModel] | None = None,
    response: type[BaseModel] | None = None,
    content_type: str = "application/json",
    streams: bool = False,
    generates: bool = False,
) -> Callable[[View], View]:
    """Describes a view; its docstring is the summary and the text.

    ``generates`` marks routes that the allowance counts.
    """

    def mark(view: View) -> View:
        setattr(view, ATTRIBUTE, Description(request, response, content_type, streams, generates))
        return view

    return mark


def description(view: Callable[..., Any]) -> Description:
    """What a view says about itself; nothing known for one without a mark."""
    found: Description = getattr(view, ATTRIBUTE, Description())
    return found
