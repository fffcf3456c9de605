"""Answers of several plugins as one mapping."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hookline.exchange import Exchange
from hookline.isolation import Call, Isolation, Use

log = logging.getLogger("hookline.plugins")


@dataclass(slots=True)
class Merger:
    """Asks plugins for mappings. Where two give the same key the later one wins, and the log says
    so, once for each two."""

    isolation: Isolation
    _told: set[tuple[str, str, str, str]] = field(default_factory=set)

    def merged(self, calls: Iterable[Call], exchange: Exchange, check: Use) -> dict[str, Any]:
        """All answers to a plain hook as one mapping; ``check`` refuses those that are none."""
        result: dict[str, Any] = {}
        givers: dict[str, Call] = {}
        for call in calls:
            answer = dict(self.isolation.ask(call, {"exchange": exchange}, exchange, check) or ())
            for key in result.keys() & answer.keys():
                if answer[key] != result[key]:
                    self._tell_both(key, givers[key], call)
            result |= answer
            givers |= dict.fromkeys(answer, call)
        return result

    def _tell_both(self, key: str, first: Call, later: Call) -> None:
        names = (first.plugin.name, later.plugin.name)
        clash = (later.hook, key, *names)
        if clash not in self._told:
            self._told.add(clash)
            log.warning(
                "the plugins %s and %s both give '%s' in %s; %s wins",
                *(*names, key, later.hook, names[1]),
            )
