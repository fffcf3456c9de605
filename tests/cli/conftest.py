"""A command line that sees nothing of this machine, and plugins to install on it."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from huggingface_hub import constants

from hookline.cli import cli

Run = Callable[..., Result]
Install = Callable[..., None]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``hookline`` in an empty folder, with an environment of its own."""
    for name in [name for name in os.environ if name.startswith("HOOKLINE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for kind in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def invoke(*args: str, **environ: str) -> Result:
        return CliRunner().invoke(cli, args, prog_name="hookline", env=environ)

    return invoke


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution with one plugin: a module's source, whose class is ``Plugin``."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    modules: list[str] = []

    def add(name: str, source: str) -> None:
        module = f"installed_{name}"
        modules.append(module)
        (site / f"{module}.py").write_text(textwrap.dedent(source))
        info = site / f"{name}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[hookline.plugins]\n{name} = {module}:Plugin\n")

    yield add
    for module in modules:
        sys.modules.pop(module, None)
