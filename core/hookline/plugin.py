"""One plugin as the server knows it, working or not."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from hookline.about import About
from hookline.breaker import Breaker

State = Literal["active", "off", "failed"]

log = logging.getLogger("hookline.plugins")


@dataclass(slots=True)
class Plugin:
    """A plugin, with everything that is known about it.

    ``reason`` says in one line why it failed or is off. ``core`` marks the server's own,
    ``written`` those that the configuration names. ``failures`` are failed calls, ``overruns``
    calls that blocked the server for too long. ``lost_fields`` are the request fields that nobody
    has because it failed.
    """

    name: str
    state: State = "active"
    reason: str | None = None
    instance: object | None = None
    version: str | None = None
    distribution: str | None = None
    about: About = field(default_factory=About)
    essential: bool = False
    core: bool = False
    written: bool = False
    hooks: tuple[str, ...] = ()
    request_fields: type[BaseModel] | None = None
    lost_fields: tuple[str, ...] = ()
    settings_model: type[BaseModel] | None = None
    settings: BaseModel | None = None
    failures: int = 0
    overruns: int = 0
    last_failure: str | None = None
    breaker: Breaker = field(default_factory=Breaker)

    def fail(self, reason: str) -> None:
        """Puts it out of service, with one line that says why."""
        self.state, self.reason = "failed", " ".join(reason.split())
        log.error("plugin %s is off: %s", self.name, self.reason)

    @property
    def is_paused(self) -> bool:
        """Whether it is left alone for a while, because it kept failing."""
        return self.breaker.open_until is not None

    def paused(self, now: float) -> str | None:
        """Why the plugin is left alone for a while; None while its breaker is closed."""
        if self.breaker.open_until is None:
            return None
        return (
            f"paused after failures in a row, the last: {self.last_failure}; "
            f"tried again in {self.breaker.remaining(now):.0f} s"
        )

    def summary(self) -> dict[str, Any]:
        """The plugin for `/health` and ``plugins list``; ``paused`` is a state there."""
        fields = self.request_fields.model_fields if self.request_fields else {}
        return {
            "name": self.name,
            "state": "paused" if self.state == "active" and self.is_paused else self.state,
            "reason": self.reason or self.paused(time.monotonic()),
            "version": self.version,
            "essential": self.essential,
            "hooks": list(self.hooks),
            "fields": list(fields),
            "failures": self.failures,
            "overruns": self.overruns,
            "last_failure": self.last_failure,
            "breaker": self.breaker.state,
        }
