"""``hookline keys``: makes, lists and revokes API keys, also while the server runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from hookline.auth import new_key
from hookline.cli.output import json_option, note, print_json, print_table
from hookline.cli.stored import on_store
from hookline.config import Settings
from hookline.store import Store, StoredKey

NAME_MAX = 64


@click.group()
def keys() -> None:
    """API keys: who may ask."""


@keys.command("new")
@click.argument("name")
@json_option
@click.pass_obj
def new(settings: Settings, name: str, as_json: bool) -> None:
    """Makes a key called NAME and prints it, this once."""
    _check_name(name)
    key, stored = new_key(name, datetime.now(UTC))
    on_store(settings, lambda store: store.add_key(stored))
    if as_json:
        print_json({"key": key, **_row(stored)})
        return
    click.echo(key)
    note("Keep it: it cannot be shown again. Clients send it as their API key.")


@keys.command("list")
@json_option
@click.pass_obj
def list_keys(settings: Settings, as_json: bool) -> None:
    """Lists all keys, revoked ones too."""
    stored = on_store(settings, Store.keys)
    if as_json:
        print_json([_row(key) for key in stored])
    elif stored:
        print_table(("name", "id", "created", "last used", "state"), [_cells(k) for k in stored])
    else:
        note("There is no key yet. Make one with 'hookline keys new NAME'.")


@keys.command("revoke")
@click.argument("name")
@json_option
@click.pass_obj
def revoke(settings: Settings, name: str, as_json: bool) -> None:
    """Ends the key called NAME at once, for a running server too."""
    key = on_store(settings, lambda store: store.revoke_key(name, datetime.now(UTC)))
    if key is None:
        raise click.ClickException(
            f"There is no active key named '{name}'; 'hookline keys list' shows them all."
        )
    if as_json:
        print_json(_row(key))
    else:
        note(f"Revoked '{key.name}' ({key.id}).")


def _check_name(name: str) -> None:
    if not name.isprintable() or name != name.strip() or not 0 < len(name) <= NAME_MAX:
        raise click.BadParameter(
            f"use 1 to {NAME_MAX} visible characters, without space around them.",
            param_hint="NAME",
        )


def _row(key: StoredKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "created": key.created.isoformat(timespec="seconds"),
        "last_used": key.last_used and key.last_used.isoformat(timespec="seconds"),
        "revoked": key.revoked and key.revoked.isoformat(timespec="seconds"),
    }


def _cells(key: StoredKey) -> tuple[str, ...]:
    return (
        key.name,
        key.id,
        _local(key.created),
        _local(key.last_used) or "never used",
        f"revoked {_local(key.revoked)}" if key.revoked else "active",
    )


def _local(moment: datetime | None) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}" if moment else ""
