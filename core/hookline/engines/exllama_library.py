"""The two ExLlama libraries: whether they can be used here, and their import."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Literal

from hookline.errors import MissingExtra, StartError

Version = Literal["exllamav2", "exllamav3"]
"""Which ExLlama: the name of its package, of Hookline's extra, and in ``[model] engine``."""

TITLES: dict[Version, str] = {"exllamav2": "ExLlamaV2", "exllamav3": "ExLlamaV3"}


def is_installed(version: Version) -> bool:
    """Whether the package is there, which does not mean that it can be used."""
    return importlib.util.find_spec(version) is not None


def require(version: Version) -> None:
    """Raises MissingExtra without the package or PyTorch, StartError without a GPU for it.

    The package itself is not imported: neither can be without CUDA, and the first import may
    compile for minutes.
    """
    engine = f"The {TITLES[version]} engine"
    for module in ("torch", version):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(engine, version, module)
    torch = torch_library()
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        raise StartError(
            f"{engine} needs an NVIDIA GPU, and PyTorch {torch.__version__} (built for {built}) "
            "finds none: check 'nvidia-smi', or serve a GGUF of the model, which runs anywhere"
        )


def library(version: Version) -> Any:
    """The imported package. Raises StartError where it cannot be imported."""
    require(version)
    try:
        return importlib.import_module(version)
    except Exception as error:  # whatever the compiler of its CUDA code or the loader says
        reason = " ".join(str(error).split())[:500]
        raise StartError(
            f"{version} is installed but cannot be used ({type(error).__name__}: {reason}). It "
            "must be built for this PyTorch and its CUDA; without a built wheel it needs nvcc"
        ) from error


def torch_library() -> Any:
    """PyTorch, imported when it is needed."""
    return importlib.import_module("torch")
