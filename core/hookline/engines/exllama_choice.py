"""Which ExLlama reads a folder of safetensors."""

from __future__ import annotations

from pathlib import Path

from hookline.engines import exllamav2, exllamav3
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import Version, is_installed, require
from hookline.errors import StartError


def choose_version(path: Path) -> Version:
    """EXL2 and GPTQ need version 2; EXL3 needs version 3. What both read is for version 3, unless
    only version 2 is installed. Raises StartError for what neither reads."""
    quantization = ModelFolder.read(path).quantization
    if quantization in exllamav3.READS and quantization in exllamav2.READS:
        return installed_version()
    if quantization in exllamav3.READS:
        return "exllamav3"
    if quantization in exllamav2.READS:
        return "exllamav2"
    raise StartError(
        f"{path.name} is quantized with {quantization}, which no engine here reads; take "
        "an EXL3, EXL2, GPTQ or unquantized version of the model, or a GGUF"
    )


def installed_version() -> Version:
    """Version 3, unless only version 2 is installed."""
    only_two = is_installed("exllamav2") and not is_installed("exllamav3")
    return "exllamav2" if only_two else "exllamav3"


def require_any() -> None:
    """Raises StartError where neither version can be used; before gigabytes are fetched."""
    require(installed_version())
