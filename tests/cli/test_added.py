"""The commands of plugins: all of a plugin's or none."""

from __future__ import annotations

import click

from hookline import hookimpl
from hookline.cli.added import add_commands
from hookline.config import Settings
from hookline.discovery import load_plugins


class Adds:
    def __init__(self, *names: str) -> None:
        self.names = names

    @hookimpl
    def commands(self, cli: click.Group) -> None:
        for name in self.names:
            cli.add_command(click.Command(name, help=str(id(self))))


class Breaks(Adds):
    @hookimpl
    def commands(self, cli: click.Group) -> None:
        super().commands(cli)
        raise RuntimeError("half way")


def test_of_two_with_one_name_the_first_is_kept() -> None:
    first, second, third = Adds("hello"), Adds("free", "hello"), Adds("free")
    several = {"first": first, "second": second, "third": third, "breaks": Breaks("half")}
    plugins = load_plugins(Settings(plugins=[]), extra={**several, "fourth": Adds("serve")})
    problems = add_commands(plugins, group := click.Group(), ["serve"])
    assert {name: command.help for name, command in group.commands.items()} == {
        "hello": str(id(first)),
        "free": str(id(third)),
    }
    taken = "its commands cannot be used: '{}' is there already, from {}"
    assert problems["second"] == taken.format("hello", "the plugin 'first'")
    assert problems["fourth"] == taken.format("serve", "Hookline")
    assert problems["breaks"].startswith("its commands cannot be used: RuntimeError: half way (")
    assert f"{__file__}, line 27)" in problems["breaks"]
    assert len(problems) == 3
