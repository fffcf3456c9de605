"""The request as hooks see it."""

from __future__ import annotations

from pydantic import BaseModel

from hookline.discovery import request_model
from hookline.exchange import Caller, Exchange, Usage


class Base(BaseModel):
    text: str = ""


class Weather(BaseModel):
    weather: bool | str = False
    unit: str | None = None


def exchange(request: BaseModel) -> Exchange:
    return Exchange("chatcmpl-1", 0, "model", request, Caller())


def test_a_plugin_reads_its_own_fields() -> None:
    request = request_model(Base, [Weather])(text="hi", weather="today")
    assert exchange(request).fields(Weather).weather == "today"


def test_a_request_without_these_fields_gives_the_defaults() -> None:
    assert exchange(Base()).fields(Weather).weather is False


def test_a_plugin_s_own_strictness_does_not_spread() -> None:
    class Strict(BaseModel, extra="forbid"):
        strict: bool = False

    class Open(BaseModel, extra="allow"):
        pass

    request = request_model(Open, [Strict]).model_validate({"other": 1})
    assert request.model_extra == {"other": 1}


def test_asking_means_a_value_that_is_neither_default_nor_off() -> None:
    model = request_model(Base, [Weather])
    assert exchange(model(weather=True)).asks_for(Weather)
    for off in (model(), model(weather=False), model(unit=None), Base()):
        assert not exchange(off).asks_for(Weather)
    assert not exchange(model(weather=True)).asks_for(None)


def test_sources_are_numbered_over_all_kinds() -> None:
    here = exchange(Base())
    assert [here.add_source({"type": kind}) for kind in ("web", "knowledge")] == [1, 2]
    assert [source["index"] for source in here.sources] == [1, 2]


def test_usage_adds_up() -> None:
    body = Usage(3, 4, 2, 1).body()
    assert body["total_tokens"] == 7
    assert body["prompt_tokens_details"] == {"cached_tokens": 2}
    assert body["completion_tokens_details"] == {"reasoning_tokens": 1}
