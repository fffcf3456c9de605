"""What the tests on a GPU share: a small model and the engines over it.

    GPU_TEST_MODEL=FOLDER pytest -m gpu tests/gpu

The folder holds safetensors; `bench/gpu/convert.py` makes one of the default model.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline.config import ModelSettings
from hookline.engines.exllama import ExLlamaEngine
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import Version, require
from hookline.errors import StartError


@pytest.fixture(scope="session", params=["exllamav3", "exllamav2"])
def version(request: pytest.FixtureRequest) -> Version:
    """Each version that can be used here."""
    name: Version = request.param
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    try:
        require(name)
    except StartError as error:
        pytest.skip(str(error))
    return name


@pytest.fixture(scope="session")
def model() -> Path:
    """The folder of the model."""
    folder = os.environ.get("GPU_TEST_MODEL")
    if not folder:
        pytest.skip("GPU_TEST_MODEL names no folder of safetensors")
    return Path(folder)


@pytest.fixture
def load_engine(version: Version, model: Path) -> Any:
    """Loads an engine; keyword arguments are settings of the model."""

    @asynccontextmanager
    async def load(*, draft: bool = False, **settings: Any) -> AsyncIterator[ExLlamaEngine]:
        chosen = {"context": 1024, "parallel": 8, "exact": False, **settings}
        if draft:
            chosen["draft_model"] = str(model)
        engine = ExLlamaEngine(
            version,
            ModelFolder.read(model),
            model_id="small",
            settings=ModelSettings(source=str(model), **chosen),
            max_queue=64,
            draft=ModelFolder.read(model) if draft else None,
        )
        try:
            await engine.load(lambda share: None)
            yield engine
        finally:
            await engine.close()

    return load
