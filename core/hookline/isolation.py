"""How a hook of a plugin is called: within its budget, with its failures kept to itself.

A plugin that raises from the `ApiError` tree refuses the request on purpose. Anything else that it
raises, and every call that takes too long, is its own failure: it is logged, counted, told to the
client as a warning, and costs only that plugin's part of the answer. The request fails where it
asked for one of the plugin's fields, or where the call is closed: one that must not be left out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hookline.budget import OverBudget, within
from hookline.config import IsolationSettings
from hookline.errors import ApiError, PluginFailed, PluginPaused
from hookline.exchange import Exchange
from hookline.plugin import Plugin

log = logging.getLogger("hookline.plugins")

Watch = Callable[[str, str, float, bool], None]
"""Told after every call of a hook: plugin, hook, seconds, whether it failed."""

Use = Callable[[Any], object]
"""Takes an answer; where it raises, the answer was wrong and the call has failed."""


@dataclass(frozen=True, slots=True)
class Call:
    """One plugin's implementation of one hook; ``budget`` is in seconds."""

    plugin: Plugin
    hook: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    budget: float

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        return self.function(*[arguments[name] for name in self.arguments])


def _ignore(plugin: str, hook: str, seconds: float, failed: bool) -> None:
    """Watches nothing."""


@dataclass(slots=True)
class Isolation:
    """Calls hooks for one server. ``now`` are seconds of a monotonic clock."""

    limits: IsolationSettings = field(default_factory=IsolationSettings)
    watch: Watch = _ignore
    now: Callable[[], float] = time.monotonic
    _open: dict[str, Plugin] = field(default_factory=dict)

    async def wait(
        self,
        call: Call,
        arguments: Mapping[str, Any],
        exchange: Exchange | None = None,
        *,
        closed: bool = False,
        use: Use | None = None,
    ) -> Any:
        """The answer of an async hook; None where the plugin is left out or fails.

        ``use`` takes every answer, also None. Raises PluginFailed where the request cannot go on
        without it.
        """
        if not (closed or self._admits(call, exchange)):
            return None
        begin = time.perf_counter()
        try:
            answer = await within(call.budget, call(arguments))
            if use is not None:
                use(answer)
        except ApiError:
            self._ended(call, exchange, begin)
            raise
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            return self.failed(call, exchange, error, closed=closed)
        except (Exception, SystemExit) as error:
            return self.failed(call, exchange, error, closed=closed)
        self._ended(call, exchange, begin)
        return answer

    def ask(
        self,
        call: Call,
        arguments: Mapping[str, Any],
        exchange: Exchange | None = None,
        use: Use | None = None,
    ) -> Any:
        """The answer of a plain hook, like `wait`; nothing can interrupt it."""
        if not self._admits(call, exchange):
            return None
        begin = time.perf_counter()
        try:
            answer = call(arguments)
            if use is not None and answer is not None:
                use(answer)
        except ApiError:
            self._ended(call, exchange, begin)
            raise
        except (Exception, SystemExit) as error:
            return self.failed(call, exchange, error)
        self._ended(call, exchange, begin, blocks=True)
        return answer

    def make(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        """The answer of a plain hook that the plugin cannot work without. Raises what it raises."""
        begin, failed = time.perf_counter(), True
        try:
            answer = call(arguments)
            failed = False
        finally:
            self.watch(call.plugin.name, call.hook, time.perf_counter() - begin, failed)
        return answer

    # What became of a call

    def failed(
        self,
        call: Call,
        exchange: Exchange | None,
        error: BaseException,
        *,
        closed: bool = False,
    ) -> None:
        """Counts, logs and tells a failure. Raises PluginFailed like `wait`."""
        plugin, hook = call.plugin, call.hook
        log.error("plugin %s failed in %s", plugin.name, hook, exc_info=error)
        plugin.failures += 1
        late = isinstance(error, OverBudget)
        plugin.last_failure = f"{error if late else type(error).__name__} in {hook}"
        self._count(call)
        self.watch(plugin.name, hook, 0.0, True)
        if closed or plugin.essential or _asks(exchange, plugin):
            raise PluginFailed(
                f"The plugin '{plugin.name}' failed in '{hook}', and this request needs it. "
                "The server's log has the details."
            ) from error
        what = str(error) if late else f"failed ({type(error).__name__})"
        warn(exchange, plugin, hook, f"The plugin '{plugin.name}' {what}; its part is missing.")

    def route_failed(self, plugin: Plugin, route: str, error: BaseException) -> None:
        """Counts and logs a failure in a plugin's route, which pauses no hook."""
        log.error("plugin %s failed in its route %s", plugin.name, route, exc_info=error)
        plugin.failures += 1
        plugin.last_failure = f"{type(error).__name__} in {route}"
        self.watch(plugin.name, "routes", 0.0, True)

    def worked(self, call: Call, exchange: Exchange | None) -> None:
        """Ends a row of failures, unless the plugin had nothing to do for this request: then it is
        only tried again, where this request is the trial of the hook that failed."""
        plugin = call.plugin
        if call.hook not in plugin.breaker.in_a_row:
            return
        if _had_work(exchange, plugin):
            plugin.breaker.succeeded(call.hook)
        elif plugin.breaker.trying and call.hook == plugin.breaker.hook:
            plugin.breaker.reprieve()
        if plugin.breaker.open_until is None and plugin.name in self._open:
            del self._open[plugin.name]
            log.info("plugin %s works again", plugin.name)

    def _ended(
        self, call: Call, exchange: Exchange | None, begin: float, *, blocks: bool = False
    ) -> None:
        seconds = time.perf_counter() - begin
        self.watch(call.plugin.name, call.hook, seconds, False)
        if blocks and seconds > self.limits.blocking_seconds and _on_the_loop():
            self._overrun(call, seconds)
        elif call.plugin.breaker.in_a_row:
            self.worked(call, exchange)

    def _overrun(self, call: Call, seconds: float) -> None:
        plugin = call.plugin
        what = f"blocked the server for {seconds:.1f} s in {call.hook}"
        log.warning("plugin %s %s", plugin.name, what)
        plugin.overruns += 1
        plugin.last_failure = what
        self._count(call)

    def _count(self, call: Call) -> None:
        plugin = call.plugin
        if plugin.core:
            return
        if plugin.breaker.failed(call.hook, self.now()):
            log.error("plugin %s is %s", plugin.name, plugin.paused(self.now()))
        if plugin.breaker.open_until is not None:
            self._open[plugin.name] = plugin

    # Who is left out

    def _admits(self, call: Call, exchange: Exchange | None) -> bool:
        """Whether a call is made; a request leaves the same plugins out from begin to end."""
        if exchange is None:
            return call.plugin.name not in self._open or self._may_try(call)
        if exchange.paused is None:
            self.choose(exchange)
        return not exchange.paused or call.plugin.name not in exchange.paused

    def _may_try(self, call: Call) -> bool:
        """Outside of requests only the hook that fails is left out."""
        breaker = call.plugin.breaker
        blamed = call.hook in breaker.in_a_row and not call.plugin.essential
        return not blamed or breaker.trying or breaker.admits(self.now())

    def choose(self, exchange: Exchange) -> None:
        """Decides which plugins a request goes without. Raises PluginPaused where it asks for one.

        Essential ones never: leaving them out would open what they close.
        """
        exchange.paused = frozenset()
        if not self._open:
            return
        now = self.now()
        optional = [plugin for plugin in self._open.values() if not plugin.essential]
        out = [plugin for plugin in optional if not plugin.breaker.admits(now)]
        exchange.paused = frozenset(plugin.name for plugin in out)
        for plugin in out:
            message = f"The plugin '{plugin.name}' is {plugin.paused(now)}."
            if _asks(exchange, plugin):
                seconds = int(plugin.breaker.remaining(now)) + 1
                raise PluginPaused(message, retry_after=seconds)
            warn(exchange, plugin, plugin.breaker.hook or "", message)


def warn(exchange: Exchange | None, plugin: Plugin, hook: str, message: str) -> None:
    """Tells the client of a request what its answer goes without."""
    warning = {"plugin": plugin.name, "hook": hook, "message": message}
    if exchange is not None and warning not in exchange.warnings:
        exchange.warnings.append(warning)


def _asks(exchange: Exchange | None, plugin: Plugin) -> bool:
    return exchange is not None and exchange.asks_for(plugin.request_fields)


def _had_work(exchange: Exchange | None, plugin: Plugin) -> bool:
    """Whether a plugin's success means anything: one that was not asked has nothing to fail in."""
    return exchange is None or plugin.request_fields is None or _asks(exchange, plugin)


def _on_the_loop() -> bool:
    """Whether this thread runs the event loop; in another one nobody is kept waiting."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_cancelled() -> bool:
    """Whether somebody cancelled this task; else a task of the plugin's own was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
