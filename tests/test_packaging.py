"""What is built and installed: the wheel, the source distribution, and their metadata."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

import hookline

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def files(wheel: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def packages() -> list[Path]:
    """The folders of the packages that the wheel is made of."""
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    return [ROOT / name for name in hatch["build"]["targets"]["wheel"]["packages"]]


def test_the_wheel_holds_every_file_of_the_packages(files: set[str]) -> None:
    wanted = {
        path.relative_to(package.parent).as_posix()
        for package in packages()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    typed = {f"{package.name}/py.typed" for package in packages()}
    assert {"hookline/api/templates/docs.html", *typed} <= wanted
    assert wanted <= files


def test_the_wheel_puts_nothing_else_into_site_packages(files: set[str]) -> None:
    tops = {name.partition("/")[0] for name in files}
    assert tops == {
        *(package.name for package in packages()),
        f"hookline-{hookline.__version__}.dist-info",
    }
    assert f"hookline-{hookline.__version__}.dist-info/licenses/LICENSE" in files


def test_the_source_distribution_can_be_tested(tmp_path: Path) -> None:
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "core/hookline/__init__.py",
        "tests/conftest.py",
        "README.md",
        "LICENSE",
        "docs/architecture.md",
    }
    assert wanted <= names
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]


def test_the_version_is_told_once() -> None:
    assert distribution("hookline").version == hookline.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", hookline.__version__)


def test_the_command_is_installed() -> None:
    (script,) = distribution("hookline").entry_points.select(group="console_scripts")
    assert script.name == "hookline"
    assert callable(script.load())


def test_the_light_installation_needs_no_model_library() -> None:
    requirements = distribution("hookline").requires or []
    light = [text for text in requirements if "extra ==" not in text]
    assert light
    assert not [text for text in light if re.match(r"llama|torch|numpy|exllama", text)]
