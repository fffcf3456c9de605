"""``/v1/models``, ``/health`` and ``/metrics``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from quart import Blueprint, Response

from hookline.api.access import open_route
from hookline.api.bodies import Health, Model, ModelList
from hookline.api.describe import describe
from hookline.api.http import json_response
from hookline.config.check import did_you_mean, suggest
from hookline.engine import Card
from hookline.errors import NotFound
from hookline.kernel import Kernel
from hookline.metrics import CONTENT_TYPE
from hookline.models import local_models

NAME_MAX = 100
"""Characters of a model's name in an error; it is the client's own text."""


def blueprint(kernel: Kernel) -> Blueprint:
    """The routes."""
    routes = Blueprint("models", __name__)

    @routes.get("/v1/models")
    @describe(response=ModelList)
    async def models() -> Response:
        """Lists the models; ``loaded`` is true on the one that answers."""
        entries = await asyncio.to_thread(list_models, kernel)
        return json_response({"object": "list", "data": list(entries.values())})

    @routes.get("/v1/models/<path:name>")
    @describe(response=Model)
    async def model(name: str) -> Response:
        """One model."""
        entries = await asyncio.to_thread(list_models, kernel)
        if name not in entries:
            raise _unknown(name[:NAME_MAX], entries)
        return json_response(entries[name])

    @routes.get("/health")
    @open_route
    @describe(response=Health, others={"503": Health})
    async def health() -> Response:
        """200 when a model answers, 503 otherwise; needs no key."""
        body = kernel.health()
        response = json_response(body, 200 if body["status"] == "ready" else 503)
        if response.status_code == 503:
            response.headers["Retry-After"] = "2"
        return response

    @routes.get("/metrics")
    @describe(content_type="text/plain")
    async def metrics() -> Response:
        """Everything measured, for Prometheus."""
        return Response(kernel.metrics.text(), content_type=CONTENT_TYPE)

    return routes


def _unknown(name: str, entries: Iterable[str]) -> NotFound:
    meant = did_you_mean(suggest(name, entries)) or "."
    return NotFound(
        f"There is no model '{name}'{meant} GET /v1/models lists those there are.",
        param="model",
        code="model_not_found",
    )


def list_models(kernel: Kernel) -> dict[str, dict[str, Any]]:
    """Every model by id, the loaded one first: loaded, configured, found here, from plugins."""
    entries: dict[str, dict[str, Any]] = {}
    for name, about in _known(kernel):
        entries.setdefault(name, _entry(kernel, name, about))
    for model in kernel.plugins.list_models(kernel):
        about = {key: value for key, value in model.items() if key != "id"}
        entry = entries.setdefault(str(model["id"]), _entry(kernel, str(model["id"]), about))
        entry["hookline"].update(about)
    return entries


def _known(kernel: Kernel) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if kernel.ready:
        card = kernel.engine.card
        yield card.id, about_loaded(card)
    else:
        yield kernel.model_id, {}
    for name in kernel.settings.models:
        yield name, {}
    for found in local_models(kernel.data_dir):
        yield found.id, {}


def about_loaded(card: Card) -> dict[str, Any]:
    """What the loaded model is and can do."""
    return {
        "loaded": True,
        "engine": card.engine,
        "context": card.context,
        "parallel": card.parallel,
        "exact_batches": card.exact_batches,
        "tools": card.tools,
        "thinking": card.thinking,
        "vision": card.vision,
        **card.details,
    }


def _entry(kernel: Kernel, name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    unknown = {"loaded": False, "engine": None, "context": None}
    abilities = {"tools": None, "thinking": None, "vision": None, "embeddings": False}
    details = {**unknown, "kind": "chat", **abilities, **about}
    return {
        "id": name,
        "object": "model",
        "created": kernel.started,
        "owned_by": "hookline",
        "loaded": details["loaded"],
        "hookline": details,
    }
