"""What the tests of the ExLlama engines share: a small model, stand-ins for the libraries."""

from __future__ import annotations

import importlib.util
import inspect
import json
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hookline.config import ModelSettings
from hookline.engine import Generation, Job, Piece, Token
from hookline.engines import exllama_backend
from hookline.engines.exllama import ExLlamaEngine
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import Version

HERE = Path(__file__).parent
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


TENSORS = (
    *("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"),
    *(f"model.layers.0.{name}_layernorm.weight" for name in ("input", "post_attention")),
    *(f"model.layers.0.self_attn.{name}_proj.weight" for name in "qkvo"),
    *(f"model.layers.0.mlp.{name}_proj.weight" for name in ("gate", "up", "down")),
)
"""What the libraries look for in a model of one layer."""


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"exllama_{name}", HERE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def uncollected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real collection walks all that the tests have ever imported."""
    monkeypatch.setattr(exllama_backend, "gc", SimpleNamespace(collect=lambda: 0))


@pytest.fixture(scope="session")
def double() -> Any:
    """What both stand-ins share."""
    return _load("double")


@pytest.fixture
def machine(double: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine on which both libraries can be imported."""
    machine = double.Machine()
    modules = _load("double_v2").exllamav2(double, machine)
    modules["exllamav3"] = _load("double_v3").exllamav3(double, machine)
    modules["torch"] = double.torch(machine)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return machine


@pytest.fixture(scope="session")
def tokenizer_json() -> str:
    """A byte-level tokenizer with a few merges and control tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the sea is salty and the sky is wide"] * 4, trainer)
    return str(tokenizer.to_str())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of an engine run on the stand-ins, and on the real libraries where they are here.
    Those that look into a stand-in ask for ``machine``, and those run on the stand-ins only."""
    if "below" in metafunc.fixturenames:
        looks = "machine" in inspect.signature(metafunc.function).parameters
        real = not looks and _load("libraries").are_here()
        metafunc.parametrize("below", ["stand-in", "real"] if real else ["stand-in"], indirect=True)


@pytest.fixture(scope="session")
def libraries(double: Any) -> Any:
    """The real libraries, with the stand-ins' model in them."""
    return _load("libraries").Libraries(double.language, _load("kernels"))


@pytest.fixture
def below(request: pytest.FixtureRequest) -> None:
    """What an engine finds when it imports its library."""
    if request.param == "stand-in":
        request.getfixturevalue("machine")
        return
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    libraries = request.getfixturevalue("libraries")
    monkeypatch.setattr(sys, "path", sys.path + libraries.path)
    for name, module in libraries.modules.items():
        monkeypatch.setitem(sys.modules, name, module)


MakeFolder = Callable[..., Path]


@pytest.fixture
def make_folder(tmp_path: Path, tokenizer_json: str) -> MakeFolder:
    """Writes a model of safetensors; keyword arguments go into its ``config.json``."""

    def make(name: str = "salty-3b", tensors: tuple[str, ...] = TENSORS, **more: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        size = len(json.loads(tokenizer_json)["model"]["vocab"])
        config = {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": size,
            "hidden_size": 128,
            "head_dim": 128,
            "intermediate_size": 128,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "num_hidden_layers": 1,
            "rms_norm_eps": 1e-5,
            "max_position_embeddings": 4096,
            "eos_token_id": 0,
            **more,
        }
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 2]}))
        (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
        (folder / "tokenizer.json").write_text(tokenizer_json)
        (folder / "chat_template.jinja").write_text(TEMPLATE)
        header = {n: {"dtype": "F16", "shape": [0], "data_offsets": [0, 0]} for n in tensors}
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
        return folder

    return make


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    """An unquantized model, which both versions read."""
    return make_folder()


@pytest.fixture(params=["exllamav2", "exllamav3"])
def version(request: pytest.FixtureRequest) -> Version:
    """Either version."""
    name: Version = request.param
    return name


LoadEngine = Callable[..., AbstractAsyncContextManager[ExLlamaEngine]]


@pytest.fixture
def load_engine(below: None, folder: Path, version: Version) -> LoadEngine:
    """Loads the engine; keyword arguments are settings of the model."""

    @asynccontextmanager
    async def load(
        path: Path = folder, *, draft: Path | None = None, max_queue: int = 64, **settings: Any
    ) -> AsyncIterator[ExLlamaEngine]:
        chosen = {"context": 256, "parallel": 2, "exact": False, **settings}
        if draft is not None:
            chosen["draft_model"] = str(draft)
        engine = ExLlamaEngine(
            version,
            ModelFolder.read(path),
            model_id=path.name,
            settings=ModelSettings(source=str(path), **chosen),
            max_queue=max_queue,
            draft=None if draft is None else ModelFolder.read(draft),
        )
        try:
            await engine.load(lambda share: None)
            yield engine
        finally:
            await engine.close()

    return load


class Answered:
    """All that came of a job."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.tokens: list[Token] = [token for piece in pieces for token in piece.tokens]
        self.ids = [token.id for token in self.tokens]
        self.text = "".join(token.text for token in self.tokens)
        self.finish = pieces[-1].finish
        self.timings = pieces[-1].timings


@pytest.fixture(scope="session")
def answer() -> Callable[..., Any]:
    """Runs a job to its end."""

    async def run(engine: ExLlamaEngine, prompt: list[int], **about: Any) -> Answered:
        generation: Generation = engine.submit(Job(prompt, **about))
        return Answered([piece async for piece in generation])

    return run
