"""``/openapi.json`` and ``/docs``, generated from the routes and the models that validate."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from quart import Blueprint, Quart, Response, current_app
from werkzeug.routing import Rule

from hookline.api.access import docs_route, is_open
from hookline.api.bodies import Error
from hookline.api.describe import Description, describe, description
from hookline.api.http import json_response
from hookline.auth import key_required
from hookline.config import Settings
from hookline.kernel import Kernel

REFUSALS = {
    "401": "A key is required and is missing or wrong.",
    "403": "A page of another origin, or a Host that is not ours.",
    "404": "There is no such thing.",
    "503": "Not now; Retry-After says when.",
}
BODY_REFUSALS = {
    "400": "The request is wrong; the message says where.",
    "408": "The body did not arrive in time.",
    "413": "The body is over the limit.",
    "415": "The body is not application/json.",
}
GENERATION_REFUSALS = {
    "402": "Today's allowance is used up.",
    "500": "A plugin that the request needs has failed.",
    "502": "The engine failed; it is being restarted.",
}
NULLS = "Every optional field may also be null, which means absent."

Schemas = Mapping[type[BaseModel], dict[str, Any]]


def blueprint(kernel: Kernel) -> Blueprint:
    """The routes."""
    routes = Blueprint("openapi", __name__)
    pages = Environment(loader=PackageLoader("hookline.api"), autoescape=True)
    pages.filters["prose"] = _prose

    @routes.get("/openapi.json")
    @docs_route
    async def openapi() -> Response:
        """This description."""
        return json_response(document(current_app, kernel))

    @routes.get("/docs")
    @docs_route
    @describe(content_type="text/html")
    async def docs() -> Response:
        """The reference as a page."""
        page = pages.get_template("docs.html").render(api=document(current_app, kernel))
        return Response(page, content_type="text/html; charset=utf-8")

    return routes


def _prose(text: str) -> Markup:
    """A docstring's text for a page, with its code marked."""
    return Markup(re.sub(r"``?([^`]+)``?", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def document(app: Quart, kernel: Kernel) -> dict[str, Any]:
    """The OpenAPI 3.1 document of everything the application serves."""
    from hookline import __version__

    described = list(_routes(app))
    refs, definitions = _schemas({Error, *_models(described)})
    paths: dict[str, dict[str, Any]] = {}
    for rule, method, view in described:
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        security = _security(view, kernel.settings)
        paths.setdefault(path, {})[method] = {**_operation(rule, view, refs), **security}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hookline", "version": __version__, "description": _about(kernel)},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(models: set[type[BaseModel]]) -> tuple[Schemas, dict[str, Any]]:
    """A reference for each model, and the definitions that they refer to."""
    schemas, definitions = models_json_schema(
        [(model, "validation") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    refs = {model: schema for (model, _), schema in schemas.items()}
    return cast(Schemas, refs), definitions.get("$defs", {})


def _about(kernel: Kernel) -> str:
    active = [plugin.name for plugin in kernel.plugins.active() if not plugin.core]
    return f"An OpenAI-compatible API. Plugins: {', '.join(active) or 'none'}."


def _routes(app: Quart) -> Iterator[tuple[Rule, str, Callable[..., Any]]]:
    for rule in app.url_map.iter_rules():  # in the order they were added: chat first
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield rule, method.lower(), app.view_functions[rule.endpoint]


def _models(
    described: list[tuple[Rule, str, Callable[..., Any]]],
) -> Iterator[type[BaseModel]]:
    for _, _, view in described:
        about = description(view)
        bodies = (about.request, about.response, *about.others.values())
        yield from (model for model in bodies if model is not None)


def _operation(rule: Rule, view: Callable[..., Any], refs: Schemas) -> dict[str, Any]:
    about = description(view)
    summary, _, text = (inspect.getdoc(view) or rule.endpoint).partition("\n\n")
    operation: dict[str, Any] = {"operationId": rule.endpoint, "summary": summary}
    if text:
        operation["description"] = text
    if rule.arguments:
        operation["parameters"] = [_parameter(name) for name in sorted(rule.arguments)]
    if about.request is not None:
        content = {about.request_type: {"schema": refs[about.request]}}
        operation["requestBody"] = {"required": True, "content": content, "description": NULLS}
    operation["responses"] = _responses(about, refs)
    return operation


def _security(view: Callable[..., Any], settings: Settings) -> dict[str, Any]:
    if is_open(view, settings):
        return {}
    return {"security": [{"key": []}] if key_required(settings) else [{}, {"key": []}]}


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _responses(about: Description, refs: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {about.content_type: {}}
    if about.response is not None:
        content[about.content_type]["schema"] = refs[about.response]
    if about.streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {"200": {"description": "The answer.", "content": content}}
    refusals = REFUSALS | (BODY_REFUSALS if about.request else {})
    refusals |= GENERATION_REFUSALS if about.generates else {}
    for status, text in sorted(refusals.items()):
        schema = {"application/json": {"schema": refs[about.others.get(status, Error)]}}
        responses[status] = {"description": text, "content": schema}
    return responses
