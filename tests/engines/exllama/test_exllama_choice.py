"""Which engine is made for a model, and what is refused before anything is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.config import ModelSettings, Settings
from hookline.engines import BuiltinEngines
from hookline.engines.exllama import ExLlamaEngine
from hookline.engines.llamacpp import LlamaCppEngine
from hookline.errors import ConfigError, MissingExtra, StartError


def make(source: Path | str, data_dir: Path, engine: str = "auto", **settings: Any) -> Any:
    model = ModelSettings(source=str(source), engine=engine, **settings)
    return BuiltinEngines(Settings(data_dir=data_dir, model=model)).create_engine(model)


@pytest.mark.parametrize(
    ("about", "version"),
    [
        ({"quantization_config": {"quant_method": "exl3"}}, "exllamav3"),
        ({"quantization_config": {"quant_method": "exl2"}}, "exllamav2"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "exllamav2"),
        ({"tensors": ("model.layers.0.q_proj.trellis",)}, "exllamav3"),
        ({"tensors": ("model.layers.0.q_proj.q_weight",)}, "exllamav2"),
        ({"tensors": ("model.layers.0.q_proj.qweight",)}, "exllamav2"),
        ({}, "exllamav3"),
    ],
)
def test_the_files_tell_the_engine(
    machine: Any, make_folder: Any, tmp_path: Path, about: dict[str, Any], version: str
) -> None:
    engine = make(make_folder(**about), tmp_path)
    assert isinstance(engine, ExLlamaEngine)
    assert engine.generator._version == version


def test_what_both_read_goes_to_the_one_that_is_installed(
    machine: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookline.engines.exllama_choice.is_installed", lambda v: v == "exllamav2")
    assert make(folder, tmp_path).generator._version == "exllamav2"


def test_a_gguf_goes_to_llama_cpp_also_beside_safetensors(
    machine: Any, folder: Path, tmp_path: Path
) -> None:
    (folder / "salty.gguf").write_bytes(b"GGUF")
    assert isinstance(make(folder, tmp_path), LlamaCppEngine)
    assert isinstance(make(folder, tmp_path, "exllamav3"), ExLlamaEngine)
    assert isinstance(make(folder, tmp_path, "llamacpp"), LlamaCppEngine)
    assert isinstance(make("smollm2-135m", tmp_path), LlamaCppEngine)


def test_an_engine_of_a_plugin_is_not_ours(tmp_path: Path) -> None:
    assert make("any", tmp_path, "theirs") is None


def test_no_engine_reads_it(machine: Any, make_folder: Any, tmp_path: Path) -> None:
    folder = make_folder(quantization_config={"quant_method": "awq"})
    with pytest.raises(StartError, match="quantized with awq, which no engine here reads"):
        make(folder, tmp_path)


@pytest.mark.parametrize("engine", ["auto", "exllamav2", "exllamav3"])
def test_without_cuda_one_clear_line(
    machine: Any, folder: Path, tmp_path: Path, engine: str
) -> None:
    machine.cuda = False
    with pytest.raises(
        StartError, match=r"needs an NVIDIA GPU, and PyTorch 2\.11\.0 .* finds none"
    ):
        make(folder, tmp_path, engine)


@pytest.mark.parametrize("engine", ["exllamav2", "exllamav3"])
@pytest.mark.parametrize("module", ["torch", "package"])
def test_without_the_package_the_extra_is_named(
    machine: Any,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    module: str,
) -> None:
    gone = engine if module == "package" else module
    found = {"torch", "exllamav2", "exllamav3"} - {gone}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in found or None)
    with pytest.raises(MissingExtra) as error:
        make(folder, tmp_path, engine)
    assert f"pip install 'hookline[{engine}]'" in str(error.value)
    assert f"('{gone}' is missing)" in str(error.value)


def test_a_package_that_cannot_be_imported_is_one_line(
    machine: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(folder, tmp_path, "exllamav3")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "exllamav3.py").write_text("raise RuntimeError('no\\nnvcc')\n")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    monkeypatch.delitem(sys.modules, "exllamav3")
    with pytest.raises(StartError, match=r"cannot be used \(RuntimeError: no nvcc\)") as error:
        engine.generator.load(lambda share: None)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("engine", "settings", "message"),
    [
        ("exllamav3", {"loras": ["a"]}, "loras is a setting of exllamav2, and"),
        ("exllamav3", {"mmproj": "x.gguf"}, "mmproj is a setting of llamacpp, and"),
        ("exllamav2", {"threads": 4}, "threads is a setting of llamacpp, and"),
        ("exllamav2", {"gpu_layers": 9}, "gpu_layers is a setting of llamacpp, and"),
        ("llamacpp", {"cache": "q8"}, "cache is a setting of exllamav2 and exllamav3, and"),
        ("llamacpp", {"gpu_split": [1.0]}, "gpu_split is a setting of exllamav2 and exllamav3"),
        ("exllamav3", {"ngram_draft": True, "draft_model": "x"}, "exclude each other"),
    ],
)
def test_a_setting_of_another_engine_is_refused(
    machine: Any, folder: Path, tmp_path: Path, engine: str, settings: Any, message: str
) -> None:
    (folder / "salty.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match=message):
        make(folder, tmp_path, engine, **settings)


@pytest.mark.parametrize("cache", ["fp16", "q8", "q6", "q4"])
async def test_the_kv_memory_is_as_it_is_set(
    load_engine: Any, machine: Any, version: str, cache: str
) -> None:
    async with load_engine(cache=cache, context=500, parallel=3) as engine:
        assert engine.card.details["cache"] == cache
        assert engine.card.details["kv_bytes"] == 2048
    made = machine.made["cache"]
    assert made["tokens"] == 3 * 512
    if version == "exllamav2":
        suffix = "" if cache == "fp16" else f"_{cache.upper()}"
        assert made["kind"] == f"Cache{suffix}"
    else:
        bits = None if cache == "fp16" else int(cache[1:])
        assert (made.get("k_bits"), made.get("v_bits")) == (bits, bits)
        assert made["layer_type"].bits == (16 if cache == "fp16" else 0)


@pytest.mark.parametrize("context", [300, 512, 4096])
async def test_any_context_and_many_at_once_can_be_set(
    load_engine: Any, answer: Any, context: int
) -> None:
    async with load_engine(context=context, parallel=64) as engine:
        assert (engine.card.context, engine.card.parallel) == (context, 64)
        assert len((await answer(engine, [1, 2], max_tokens=3, ignore_end=True)).ids) == 3


async def test_the_split_over_gpus_is_as_it_is_set(
    load_engine: Any, machine: Any, version: str, answer: Any
) -> None:
    async with load_engine(gpu_split=[3.0, 4.5]) as engine:
        assert (await answer(engine, [1, 2], max_tokens=1)).ids
    split = {"exllamav2": "gpu_split", "exllamav3": "use_per_device"}[version]
    assert machine.made["load text"][split] == [3.0, 4.5]
    async with load_engine(tensor_parallel=True) as engine:
        assert (await answer(engine, [1, 2], max_tokens=1)).ids
    if version == "exllamav2":
        assert machine.made["cache"]["kind"] == "Cache_TP"
    else:
        assert machine.made["load text"]["tensor_p"] is True


@pytest.mark.parametrize("version", ["exllamav2"], indirect=True)
async def test_adapters_are_loaded_and_freed(
    load_engine: Any, machine: Any, tmp_path: Path
) -> None:
    adapter = tmp_path / "tone"
    adapter.mkdir()
    with pytest.raises(StartError, match=r"\[model\] loras: .*tone cannot be used: No LoRA found"):
        async with load_engine(loras=[adapter]):
            pass
    (adapter / "adapter_model.safetensors").touch()
    async with load_engine(loras=[adapter]) as engine:
        assert engine.card.details["loras"] == ["tone"]
        assert "1 lora" in machine.events
    assert machine.events.index("unload lora") < machine.events.index("unload text", -3)


@pytest.mark.parametrize("version", ["exllamav2"], indirect=True)
@pytest.mark.parametrize("why", ["no flash-attn", "not with this model"])
async def test_without_flash_attention_version_two_answers_one_at_a_time(
    load_engine: Any, machine: Any, answer: Any, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    machine.no_flash_attn = why == "not with this model"
    if why == "no flash-attn":
        machine.paged = False
        sys.modules["exllamav2.attn"].has_flash_attn_with_paged = False  # type: ignore[attr-defined]
    async with load_engine(parallel=4) as engine:
        assert engine.card.parallel == engine.generator.parallel == 1
        assert "flash-attn 2.5.7 or later is missing" in engine.card.details["one_at_a_time"]
        first = await answer(engine, [1, 40, 50], max_tokens=4, ignore_end=True)
        again = await answer(engine, [1, 40, 50], max_tokens=4, ignore_end=True)
        assert (again.ids, again.timings.cached_tokens) == (first.ids, 2)
    assert "one at a time (parallel = 1), not 4" in caplog.text
