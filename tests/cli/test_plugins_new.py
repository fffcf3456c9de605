"""``hookline plugins new``, ``install`` and ``uninstall``."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hatchling.builders.wheel import WheelBuilder

Run = Callable[..., Result]
Install = Callable[..., None]


def test_a_new_package_works_and_its_test_passes(run: Run, tmp_path: Path) -> None:
    result = run("plugins", "new", "night-sky")
    assert result.exit_code == 0, result.output
    folder = Path("hookline-night-sky").absolute()
    (wheel,) = WheelBuilder(str(folder)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        assert "hookline_night_sky/py.typed" in archive.namelist()
        archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "greeted or active",
         "-W", "ignore::pytest.PytestWarning", "tests"],
        cwd=folder,
        env={"PYTHONPATH": f"{tmp_path / 'site'}:{':'.join(sys.path)}", "PATH": ""},
        check=False,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    for check in (["check", "hookline_night_sky"], ["format", "--check", "."]):
        command = [sys.executable, "-m", "ruff", check[0], "--isolated", *check[1:]]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_files_of_a_new_package(run: Run) -> None:
    told = json.loads(run("plugins", "new", "sky", "--into", "made/here", "--json").stdout)
    folder = Path(told["folder"])
    assert folder == Path("made/here/hookline-sky")
    files = sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
    assert files == sorted(told["files"])
    assert set(files) >= {"README.md", ".github/workflows/test.yml", "tests/test_sky.py"}
    for name in files:
        assert "$" not in (folder / name).read_text().replace("${{", ""), name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Sky", "is no name for a plugin"),
        ("9sky", "is no name for a plugin"),
        ("night--sky", "is no name for a plugin"),
        ("sky-", "is no name for a plugin"),
        ("../sky", "is no name for a plugin"),
        ("class", "means something already"),
        ("temperature", "means something already"),
        ("thinking", "There is a plugin 'thinking' already"),
    ],
)
def test_names_that_cannot_be_are_refused(run: Run, name: str, words: str) -> None:
    result = run("plugins", "new", name)
    assert result.exit_code == 1
    assert words in result.stderr
    assert not [*Path().iterdir()]


def test_a_folder_that_is_there_is_left_alone(run: Run) -> None:
    run("plugins", "new", "sky")
    result = run("plugins", "new", "sky")
    assert result.exit_code == 1
    assert "hookline-sky cannot be written: File exists" in result.stderr


# install and uninstall


def test_a_package_is_installed_and_its_plugin_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("plugins", "new", "sky")
    (wheel,) = WheelBuilder(str(Path("hookline-sky").absolute())).build(
        directory=str(tmp_path), versions=["standard"]
    )
    target = tmp_path / "target"
    target.mkdir()
    monkeypatch.syspath_prepend(target)
    for name, value in {"TARGET": str(target), "NO_INDEX": "1", "NO_DEPS": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    result = run("install", str(wheel))
    assert result.exit_code == 0, result.output
    assert f"$ {sys.executable} -m pip install {wheel}" in result.stderr
    assert "The plugin sky is installed: hookline plugins enable sky" in result.stdout
    assert "must be restarted" in result.stdout
    again = json.loads(run("install", "--upgrade", str(wheel), "--json").stdout)
    assert (again["exit_code"], again["plugins"]) == (0, [])
    failed = run("install", str(tmp_path / "no-such.whl"))
    assert failed.exit_code != 0


class Pip:
    """Stands for pip: notes what it is asked, and forgets a plugin's records."""

    def __init__(self, records: Path) -> None:
        self.records, self.commands = records, list[list[str]]()

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        self.commands.append(command)
        (self.records / "entry_points.txt").unlink(missing_ok=True)
        return subprocess.CompletedProcess(command, 0)


def test_uninstall_takes_the_name_of_a_plugin(
    run: Run, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("sky", "class Plugin: ...")
    pip = Pip(tmp_path / "site" / "sky-1.5.dist-info")
    monkeypatch.setattr("hookline.cli.install.subprocess.run", pip)
    Path("hookline.toml").write_text('plugins = ["sky"]\n[plugin.sky]\ndepth = 1\n')
    result = run("uninstall", "sky", "pluggy", "--yes")
    assert pip.commands == [[sys.executable, "-m", "pip", "uninstall", "--yes", "sky", "pluggy"]]
    told = "Its name in 'plugins' and its table [plugin.sky] are still there for sky: "
    assert f"{told}hookline plugins disable sky" in result.stdout
    assert run("plugins", "disable", "sky").exit_code == 0
    assert Path("hookline.toml").read_text() == "plugins = []\n# [plugin.sky]\n# depth = 1\n"


def test_what_is_no_package_is_not_uninstalled(run: Run) -> None:
    Path("plugins").mkdir()
    Path("plugins/tide.py").write_text("")
    Path("hookline.toml").write_text("")
    result = run("uninstall", "tide")
    assert result.exit_code == 1
    assert "is a single file: delete" in result.stderr
    result = run("uninstall", "nosuch")
    assert result.exit_code == 1
    assert "No package 'nosuch' is installed" in result.stderr


def test_built_in_plugins_are_not_uninstalled(run: Run) -> None:
    result = run("uninstall", "tools")
    assert result.exit_code == 1
    assert "is a part of Hookline" in result.stderr


def test_without_pip_it_says_how_to_get_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookline.cli.install.find_spec", lambda name: None)
    result = run("install", "anything")
    assert result.exit_code == 1
    assert "-m ensurepip" in result.stderr
