"""What operators watch: counters and histograms for Prometheus.

Labels hold only names that the server itself knows (routes, plugins, hooks, reasons), never
prompts, keys or names that a client made up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from math import inf

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from hookline.engine import EngineStats, Timings
from hookline.plugin import Plugin

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
RATES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

CONTENT_TYPE = CONTENT_TYPE_LATEST


class HookTimes(Collector):
    """The time in each plugin's hooks, as a histogram.

    Written at every call of every hook, so it must cost next to nothing: prometheus_client's own
    histogram takes a lock for each number.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._sums: dict[tuple[str, str], float] = {}

    def observe(self, plugin: str, hook: str, seconds: float) -> None:
        """One more call."""
        key = plugin, hook
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * (len(SECONDS) + 1)
            self._sums[key] = 0.0
        counts[bisect_left(SECONDS, seconds)] += 1
        self._sums[key] += seconds

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """The histogram as it is now."""
        family = HistogramMetricFamily(
            "hookline_plugin_seconds", "Time in a plugin's hook.", labels=("plugin", "hook")
        )
        limits = [*map(floatToGoString, (*SECONDS, inf))]
        for key, counts in [*self._counts.items()]:
            buckets = [*zip(limits, accumulate(counts), strict=True)]
            family.add_metric(key, buckets=buckets, sum_value=self._sums[key])
        return [family]


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self, stats: Callable[[], EngineStats]) -> None:
        self.registry = CollectorRegistry()
        # else a gauge beside each counter says when it was made
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.requests = self._counter("requests", "Requests answered.", "route", "status")
        self.in_flight = Gauge(
            "hookline_requests_in_flight", "Generation requests at work.", registry=self.registry
        )
        self.finished = self._counter("choices", "Choices ended, by reason.", "reason")
        self.tokens = self._counter("tokens", "Tokens, by kind.", "kind")
        self.failures = self._counter("plugin_failures", "Failed calls.", "plugin", "hook")
        self.hook_times = HookTimes()
        self.registry.register(self.hook_times)
        self.queue_time = self._histogram("queue_seconds", "A job's wait for a place.", SECONDS)
        self.first_token = self._histogram(
            "time_to_first_token_seconds", "From submit to first token.", SECONDS
        )
        self.rate = self._histogram(
            "tokens_per_second", "Generated tokens a second and choice.", RATES
        )
        self._watch_engine(stats)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"hookline_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"hookline_{name}", text, labels, buckets=buckets, registry=self.registry)

    def _watch_engine(self, stats: Callable[[], EngineStats]) -> None:
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "running": ("Jobs being answered.", lambda: stats().running),
            "queued": ("Jobs that wait.", lambda: stats().queued),
            "engine_restarts": ("Times the engine was restarted.", lambda: stats().restarts),
            "kv_bytes": ("Memory of the KV cache.", lambda: stats().kv_bytes),
            "kv_used_tokens": ("Tokens in the KV cache.", lambda: stats().kv_used_tokens),
        }
        for name, (text, read) in gauges.items():
            Gauge(f"hookline_{name}", text, registry=self.registry).set_function(read)

    def watch_plugins(self, plugins: Iterable[Plugin]) -> None:
        """Reads the state of each plugin whenever it is asked."""
        gauges: dict[str, tuple[str, Callable[[Plugin], float]]] = {
            "failed": ("1 while the plugin is out of service.", lambda p: p.state == "failed"),
            "paused": ("1 while it is left alone for its failures.", lambda p: p.is_paused),
            "overruns": ("Calls that blocked the server for too long.", lambda p: p.overruns),
        }
        for name, (text, read) in gauges.items():
            gauge = Gauge(f"hookline_plugin_{name}", text, ("plugin",), registry=self.registry)
            for plugin in plugins:
                gauge.labels(plugin.name).set_function(partial(read, plugin))

    def hook(self, plugin: str, hook: str, seconds: float, failed: bool) -> None:
        """A plugin's hook was called."""
        self.hook_times.observe(plugin, hook, seconds)
        if failed:
            self.failures.labels(plugin, hook).inc()

    def choice(self, timings: Timings, reason: str) -> None:
        """One choice of an answer is over."""
        self.finished.labels(reason).inc()
        self.tokens.labels("prompt").inc(timings.prompt_tokens)
        self.tokens.labels("cached").inc(timings.cached_tokens)
        self.tokens.labels("generated").inc(timings.predicted_n)
        self.queue_time.observe(timings.queue_ms / 1000)
        if timings.predicted_n:
            self.first_token.observe((timings.queue_ms + timings.prompt_ms) / 1000)
        if timings.predicted_n > 1:
            self.rate.observe((timings.predicted_n - 1) / max(timings.predicted_ms, 1e-3) * 1000)

    def text(self) -> bytes:
        """Everything in Prometheus's text format."""
        return generate_latest(self.registry)
