"""The benchmarks over HTTP measure what they say, on a server that answers at once."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hookline.engines.scripted import Pause, say


@pytest.fixture
def over_http(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    return importlib.import_module("bench.over_http")


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    return importlib.import_module("bench.soak")


async def test_every_figure_of_a_plan_is_measured(on_port: Any, over_http: ModuleType) -> None:
    plan = over_http.Plan(clients=[1, 3], prompts=["short"], rounds=2, max_tokens=4, pause=0)
    words = say("a", Pause(0.01), "b", Pause(0.01), "c", "d", "e")
    async with on_port(script=words) as server:
        targets = [over_http.Target(name, f"{server.url}/v1") for name in ("one", "two")]
        measured = await over_http.Bench(plan, targets).run()
    values = measured["two"].values
    assert len(values["short, 1 clients: first token"]) == 2
    assert len(values["short, 3 clients: first token"]) == 6
    assert len(values["short, 3 clients: each"]) == 6
    assert len(values["short, 3 clients: together"]) == 2
    assert len(values["short, second turn: first token"]) == 2
    assert values["a GET beside 4 streams"]
    assert all(value > 0 for each in values.values() for value in each)
    figures = {name: over_http.figures(one) for name, one in measured.items()}
    assert figures["one"].keys() == figures["two"].keys()
    assert over_http.report(figures).row_count == len(figures["one"])


async def test_tokens_are_those_the_server_counted(on_port: Any, over_http: ModuleType) -> None:
    async with on_port(script=say("a", "b", "c", "d", "e")) as server:
        questions = over_http.Numbers().questions("short", 2)
        asked = await over_http.together(f"{server.url}/v1", questions, 3)
    assert [(answer.text, answer.tokens) for answer in asked.answers] == [("abc", 3)] * 2


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.95, 4), (0.25, 1)])
def test_percentiles_are_measured_values(over_http: ModuleType, share: float, value: int) -> None:
    assert over_http.percentile([4, 1, 3, 2], share) == value


def test_a_third_of_the_requests_is_broken_off(soak: ModuleType) -> None:
    mixed = list(soak.requests(1000, seed=1))
    assert mixed == list(soak.requests(1000, seed=1))
    assert 300 < sum(request.leaves for request in mixed) < 370
    assert len({request.kind for request in mixed}) == 12


def test_growth_is_noticed(soak: ModuleType) -> None:
    rest = dict.fromkeys(soak.WATCHED, 0.0)
    start = soak.Sight(memory=100, threads=8, handles=20, gauges=rest)
    bounds = soak.Bounds(memory=40)
    assert soak.grown(start, soak.Sight(120, 9, 21, rest), bounds) == []
    assert len(soak.grown(start, soak.Sight(150, 20, 40, rest), bounds)) == 3
    assert soak.grown(start, soak.Sight(100, 8, 20, {**rest, "running": 1.0}), bounds)
    assert soak.grown(start, soak.Sight(100, 8, 20, {**rest, "engine_restarts": 1.0}), bounds)


async def test_a_request_that_goes_wrong_is_noticed(on_port: Any, soak: ModuleType) -> None:
    async with on_port(script=say("a"), engine={"max_queue": 0, "parallel": 1}) as server:
        run = soak.Soak(
            soak.Target("one", f"{server.url}/v1"), server.client, soak.random.Random(1)
        )
        await run.send(iter([soak.chat(1), soak.broken_json(2), soak.two_choices(3)]), 1)
    assert run.outcomes == {
        ("plain", "200"): 1,
        ("broken JSON", "400"): 1,
        ("two choices", "503"): 1,
    }
    assert len(run.wrong) == 1
