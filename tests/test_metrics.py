"""What operators watch."""

from __future__ import annotations

from hookline.engine import EngineStats, Timings
from hookline.metrics import Metrics


def lines(metrics: Metrics) -> dict[str, float]:
    text = metrics.text().decode()
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_the_engine_is_read_when_asked() -> None:
    stats = [EngineStats(running=1)]
    metrics = Metrics(lambda: stats[0])
    assert lines(metrics)["hookline_running"] == 1
    stats[0] = EngineStats(running=3, queued=2, kv_bytes=10)
    assert lines(metrics)["hookline_running"] == 3
    assert lines(metrics)["hookline_queued"] == 2
    assert lines(metrics)["hookline_kv_bytes"] == 10


def test_a_choice_counts_tokens_and_times() -> None:
    metrics = Metrics(EngineStats)
    timings = Timings(
        queue_ms=100,
        prompt_tokens=10,
        cached_tokens=4,
        prompt_ms=400,
        predicted_n=11,
        predicted_ms=1000,
    )
    metrics.choice(timings, "stop")
    seen = lines(metrics)
    assert seen['hookline_tokens_total{kind="prompt"}'] == 10
    assert seen['hookline_tokens_total{kind="cached"}'] == 4
    assert seen['hookline_tokens_total{kind="generated"}'] == 11
    assert seen["hookline_time_to_first_token_seconds_sum"] == 0.5
    assert seen["hookline_tokens_per_second_sum"] == 10
    assert seen['hookline_choices_total{reason="stop"}'] == 1


def test_a_choice_that_never_spoke_has_no_speed() -> None:
    metrics = Metrics(EngineStats)
    metrics.choice(Timings(), "cancelled")
    assert lines(metrics)["hookline_tokens_per_second_count"] == 0


def test_hooks_are_timed_and_their_failures_counted() -> None:
    metrics = Metrics(EngineStats)
    metrics.hook("weather", "transform", 0.5, False)
    metrics.hook("weather", "transform", 0.5, True)
    seen = lines(metrics)
    assert seen['hookline_plugin_seconds_sum{hook="transform",plugin="weather"}'] == 1.0
    assert seen['hookline_plugin_failures_total{hook="transform",plugin="weather"}'] == 1
