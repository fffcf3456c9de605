"""From bytes to a model, and from what was wrong to an answer that names the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pydantic_core
from pydantic import BaseModel, ValidationError

from hookline.errors import InvalidJson, InvalidRequest

Model = TypeVar("Model", bound=BaseModel)
PATH_MAX = 120
"""Characters of a field's place in an error; keys are the client's own text."""

_TAG_PROBLEMS = ("union_tag_invalid", "union_tag_not_found")


def parse_json(data: bytes) -> dict[str, Any]:
    """A body as a JSON object. Raises InvalidJson: broken, too deep, not an object, not UTF-8."""
    try:
        value = pydantic_core.from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidJson(f"The body is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InvalidJson('The body must be a JSON object, such as {"messages": […]}.')
    return value


def validate(model: type[Model], data: Mapping[str, Any]) -> Model:
    """A body as its model. Raises InvalidRequest that names the first wrong field."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid(error, data) from None
    except RecursionError as error:
        raise InvalidRequest("The body is nested too deeply.") from error


def invalid(error: ValidationError, data: Mapping[str, Any]) -> InvalidRequest:
    """The most telling problem of a validation as an answer for the client."""
    problems = error.errors(include_url=False, include_input=False)
    field = problems[0]["loc"][:1]
    place, problem = max(
        ((_place(problem, data), problem) for problem in problems if problem["loc"][:1] == field),
        key=_how_telling,
    )
    param = _path(place)
    message = _message(problem)
    return InvalidRequest(f"'{param}': {message.rstrip('.')}." if param else message, param=param)


def _how_telling(found: tuple[list[int | str], Mapping[str, Any]]) -> tuple[int, bool]:
    """Of the alternatives of a union: the one that got deepest, then one whose type was right."""
    place, problem = found
    return len(place), not problem["type"].endswith("_type")


def _place(problem: Mapping[str, Any], data: Any) -> list[int | str]:
    """Where in the body a problem is, without the names of alternatives that pydantic adds."""
    place: list[int | str] = []
    *parents, last = problem["loc"] or ("",)
    for step, following in zip(parents, problem["loc"][1:], strict=True):
        if _is_in(data, step) and not _is_tag(data, step, following):
            place.append(step)
            data = data[step]
    if _is_in(data, last) or (problem["type"] == "missing" and last):
        place.append(last)
    if problem["type"] in _TAG_PROBLEMS:
        place.append(problem["ctx"]["discriminator"].strip("'"))
    if "param" in problem.get("ctx", {}):
        place.append(problem["ctx"]["param"])
    return place


def _is_tag(data: Any, step: int | str, following: int | str) -> bool:
    """Whether a step is the ``type`` of an object, which pydantic puts before the field that has
    the same name."""
    return step == following and isinstance(data, Mapping) and data.get("type") == step


def _message(problem: Mapping[str, Any]) -> str:
    context = problem.get("ctx", {})
    if "error" in context:
        return str(context["error"])
    match problem["type"]:
        case "union_tag_invalid":
            return f"must be one of {context['expected_tags']}"
        case "union_tag_not_found":
            return "is missing"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be an object"
    return str(problem["msg"])


def _is_in(data: Any, step: int | str) -> bool:
    if isinstance(step, int):
        return isinstance(data, list) and step < len(data)
    return isinstance(data, Mapping) and step in data


def _path(place: Sequence[int | str]) -> str | None:
    """``["messages", 0, "content"]`` as ``messages[0].content``; None for the whole body."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return steps.removeprefix(".")[:PATH_MAX] or None
