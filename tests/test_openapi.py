"""Our own description of the API, held against what the server does with generated requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import CheckFunction, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hookline.engines.scripted import say

OPERATIONS = [
    "GET /docs",
    "GET /health",
    "GET /metrics",
    "GET /openapi.json",
    "GET /v1/models",
    "GET /v1/models/{name}",
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/detokenize",
    "POST /v1/tokenize",
]

CONFORMANCE = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

bounded = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def exercise(
    url: str,
    operation: str,
    mode: GenerationMode = GenerationMode.POSITIVE,
    checks: Sequence[CheckFunction] = (not_a_server_error, *CONFORMANCE),
) -> None:
    """Sends generated requests and holds each answer against the description."""
    method, _, path = operation.partition(" ")
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    strategy = schema[path][method].as_strategy(generation_mode=mode)

    @bounded
    @given(case=strategy)
    def answers(case: schemathesis.Case[Any]) -> None:
        case.validate_response(case.call(timeout=20), checks=list(checks))

    answers()


async def test_every_route_is_exercised(in_process: Any) -> None:
    async with in_process() as server:
        paths = (await server.client.get("/openapi.json")).json()["paths"]
    described = [
        f"{method.upper()} {path}" for path, methods in paths.items() for method in methods
    ]
    assert sorted(described) == OPERATIONS


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_right_requests(on_port: Any, operation: str) -> None:
    async with on_port(script=say("Hello", " there")) as server:
        await asyncio.to_thread(exercise, server.url, operation)


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name.startswith("POST")])
async def test_wrong_requests(on_port: Any, operation: str) -> None:
    async with on_port(script=say("Hello", " there")) as server:
        await asyncio.to_thread(exercise, server.url, operation, GenerationMode.NEGATIVE)


async def test_health_of_a_server_that_is_not_ready(on_port: Any) -> None:
    async with on_port() as server:
        server.kernel.stopping = True
        assert (await server.client.get("/health")).status_code == 503
        await asyncio.to_thread(exercise, server.url, "GET /health", checks=CONFORMANCE)
