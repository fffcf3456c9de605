"""``hookline quota``: today's counts, and setting them back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from hookline.cli.output import json_option, note, print_json, print_table
from hookline.cli.stored import on_store
from hookline.config import Settings
from hookline.quota import EVERYBODY, duration, next_midnight, system_clock, until_midnight
from hookline.store import Store


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def quota(context: click.Context, as_json: bool) -> None:
    """The daily allowance: shows today's counts and when they start again."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("Write --json after the subcommand.")
        return
    settings: Settings = context.obj
    now = system_clock()
    report = _report(settings, now, on_store(settings, lambda store: _today(store, now)))
    if as_json:
        print_json(report)
    else:
        _show(report)


@quota.command("reset")
@json_option
@click.pass_obj
def reset(settings: Settings, as_json: bool) -> None:
    """Sets today's counts back to 0, for a running server too."""
    day = system_clock().date()
    on_store(settings, lambda store: store.reset_counts(day))
    if as_json:
        print_json({"day": day.isoformat(), "counts": []})
    else:
        note(f"The counts of {day} are 0 again.")


async def _today(store: Store, now: datetime) -> dict[tuple[str, str], int]:
    """Today's counts by scope and the name people know it by."""
    names = {key.id: key.name for key in await store.keys()}
    counts = await store.counts(now.date())
    return {(scope, names.get(scope, scope)): used for scope, used in counts.items()}


def _report(
    settings: Settings, now: datetime, counts: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    limit, per_key = settings.quota.daily_prompts, settings.quota.per_key
    return {
        "day": now.date().isoformat(),
        "limit": limit or None,
        "per_key": per_key,
        "resets_at": next_midnight(now).isoformat(),
        "resets_in": duration(until_midnight(now)),
        "counts": [
            {
                "id": scope,
                "name": "everybody" if scope == EVERYBODY else name,
                "used": used,
                "remaining": max(0, limit - used) if limit else None,
            }
            for (scope, name), used in counts.items()
            if (scope != EVERYBODY) == per_key
        ],
    }


def _show(report: Mapping[str, Any]) -> None:
    if report["limit"] is None:
        note("There is no allowance: [quota] daily_prompts is 0.")
        return
    whose = "for each key" if report["per_key"] else "for all together"
    many = f"{report['limit']} request{'s' if report['limit'] != 1 else ''}"
    note(f"{many} a day {whose}; it starts again in {report['resets_in']}.")
    rows = [(count["name"], count["used"], count["remaining"]) for count in report["counts"]]
    print_table(("who", "used", "left"), rows)
