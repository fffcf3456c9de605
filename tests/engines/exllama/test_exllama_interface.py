"""The stand-ins against the libraries: the interface that the engines rely on, as it was read in
exllamav2 0.3.2 and exllamav3 1.6.5.

Neither can be imported without CUDA, so their source is read. It is looked for where the packages
are installed, and in the folder that ``EXLLAMA_SOURCES`` names (unpacked wheels will do).
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Names = tuple[str, ...]

CALLED: dict[str, dict[str, Names]] = {
    "exllamav3/model/config.py": {"Config.from_directory": ("directory",)},
    "exllamav3/model/model.py": {
        "Model.from_config": ("config", "component"),
        "Model.load_gen": ("use_per_device", "tensor_p", "callback", "max_batch_size"),
        "Model.unload": (),
    },
    "exllamav3/cache/cache.py": {
        "Cache.__init__": (
            *("model", "max_num_tokens", "layer_type", "max_batch_size", "max_history"),
            "**kwargs",
        ),
    },
    "exllamav3/cache/quant.py": {"CacheLayer_quant.__init__": ("k_bits", "v_bits")},
    "exllamav3/tokenizer/tokenizer.py": {"Tokenizer.from_config": ("config",)},
    "exllamav3/generator/sampler/sampler.py": {
        "Sampler.forward": ("logits", "sequence_ids", "rand_u32", "tokenizer"),
    },
    "exllamav3/generator/generator.py": {
        "Generator.__init__": (
            *("model", "cache", "tokenizer", "max_batch_size", "draft_model", "draft_cache"),
            *("num_draft_tokens", "ngram_match_min"),
        ),
        "Generator.enqueue": ("job",),
        "Generator.cancel": ("job",),
        "Generator.iterate": (),
        "Generator.close": (),
    },
    "exllamav3/generator/job.py": {
        "Job.__init__": ("input_ids", "max_new_tokens", "sampler", "embeddings"),
    },
    "exllamav2/config.py": {
        "ExLlamaV2Config.__init__": ("model_dir",),
        "ExLlamaV2Config.arch_compat_overrides": (),
    },
    "exllamav2/model.py": {
        "ExLlamaV2.__init__": ("config",),
        "ExLlamaV2.load": ("gpu_split", "callback"),
        "ExLlamaV2.load_autosplit": ("cache", "callback"),
        "ExLlamaV2.load_tp": (
            *("gpu_split", "callback", "expect_cache_tokens", "expect_cache_base"),
        ),
        "ExLlamaV2.unload": (),
    },
    "exllamav2/cache.py": {
        "ExLlamaV2Cache.__init__": ("model", "max_seq_len", "lazy"),
        "ExLlamaV2Cache_Q4.__init__": ("model", "max_seq_len", "lazy"),
        "ExLlamaV2Cache_Q6.__init__": ("model", "max_seq_len", "lazy"),
        "ExLlamaV2Cache_Q8.__init__": ("model", "max_seq_len", "lazy"),
        "ExLlamaV2Cache_TP.__init__": ("model", "base", "max_seq_len"),
        "ExLlamaV2Cache.footprint": (),
    },
    "exllamav2/lora.py": {
        "ExLlamaV2Lora.from_directory": ("model", "directory"),
        "ExLlamaV2Lora.unload": (),
    },
    "exllamav2/vlm/vision_tower.py": {
        "ExLlamaV2VisionTower.get_image_embeddings": ("model", "tokenizer", "image"),
    },
    "exllamav2/generator/dynamic.py": {
        "ExLlamaV2DynamicGenerator.__init__": (
            *("model", "cache", "tokenizer", "max_batch_size", "draft_model", "draft_cache"),
            *("num_draft_tokens", "use_ngram_draft", "max_sampling_threads", "paged", "max_q_size"),
        ),
        "ExLlamaV2DynamicGenerator.enqueue": ("job",),
        "ExLlamaV2DynamicGenerator.cancel": ("job",),
        "ExLlamaV2DynamicGenerator.iterate": (),
        "ExLlamaV2DynamicGenerator.set_loras": ("loras",),
        "ExLlamaV2DynamicJob.__init__": (
            *("input_ids", "max_new_tokens", "gen_settings", "filters", "embeddings"),
        ),
    },
    "exllamav2/generator/filters/base.py": {
        "ExLlamaV2Filter.begin": ("prefix_str",),
        "ExLlamaV2Filter.feed": ("token",),
        "ExLlamaV2Filter.can_mask_logits": (),
        "ExLlamaV2Filter.use_background_worker": (),
        "ExLlamaV2Filter.background_drop": (),
        "ExLlamaV2Filter.get_next": ("mask",),
        "ExLlamaV2Filter.mask_logits": ("logits",),
    },
}
"""Parameters that the adapters pass, or are passed, by file, class and method."""

WRITTEN: dict[str, Names] = {
    "exllamav3/generator/job.py": (
        *('"stage": "streaming"', '"stage": "prefill"', '"curr_progress"', '"eos": emit_eos'),
        *("self.cached_pages", "self.cached_tokens", "logit_mask = self.device_logit_mask"),
        "max_new_tokens >= 1",
    ),
    "exllamav3/generator/generator.py": (
        *('"stage": "error"', '"error": error', '"job": job', "job.sampler.reqs_past_ids"),
        "next_token.is_cuda",
    ),
    "exllamav3/constants.py": ("PAGE_SIZE = 256",),
    "exllamav3/tokenizer/mm_embedding.py": (
        *("FIRST_MM_EMBEDDING_INDEX = 1000000000", "self.token_list", "self.align"),
    ),
    "exllamav3/cache/fp16.py": ("def storage_size(self)",),
    "exllamav2/generator/dynamic.py": (
        *('"stage": "streaming"', '"stage": "prefill"', '"curr_progress"', '"job": self'),
        *("self.cached_pages", "self.cached_tokens", "self.page_size", 'f.begin("")'),
        "self.max_new_tokens - self.generator.num_draft_tokens",
        "self.max_sampling_threads > 1",
    ),
    "exllamav2/generator/sampler.py": (
        *("f.get_next(mask = True) == True", "f.mask_logits(flat_logits).view(1, 1, -1)"),
        "def greedy(",
    ),
    "exllamav2/generator/dynamic_embeddings.py": (
        *("self.next_token_index = 1000000000", "def get_ids(self)"),
    ),
    "exllamav2/attn.py": ("has_flash_attn_with_paged",),
    "exllamav2/config.py": ("self.vision_model_type", "self.no_flash_attn", "max_seq_len: int"),
}
"""What of the source the adapters rely on that no signature shows."""


def source_root(package: str) -> Path:
    """The folder that holds a package's source."""
    folder = os.environ.get("EXLLAMA_SOURCES")
    if folder and (Path(folder) / package).is_dir():
        return Path(folder)
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed, and EXLLAMA_SOURCES names no folder with it")
    return Path(spec.submodule_search_locations[0]).parent


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """All methods of a file's classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def parameters(function: ast.FunctionDef) -> set[str]:
    """A function's parameters; any number of keywords as ``**name``."""
    args = function.args
    names = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    return names | ({f"**{args.kwarg.arg}"} if args.kwarg else set())


@pytest.mark.parametrize("file", CALLED)
def test_the_library_takes_what_the_engines_pass(file: str) -> None:
    path = source_root(file.partition("/")[0]) / file
    found = dict(functions(ast.parse(path.read_text(encoding="utf-8"))))
    for name, wanted in CALLED[file].items():
        assert name in found, f"{file} has no {name}"
        missing = set(wanted) - parameters(found[name])
        assert not missing, f"{file}: {name} takes no {missing}"


@pytest.mark.parametrize("file", WRITTEN)
def test_the_library_says_what_the_engines_read(file: str) -> None:
    path = source_root(file.partition("/")[0]) / file
    text = path.read_text(encoding="utf-8")
    assert not [snippet for snippet in WRITTEN[file] if snippet not in text]


PARTS = {
    "exllamav2": {
        "ExLlamaV2Config": "ExLlamaV2Config",
        "ExLlamaV2": "ExLlamaV2",
        "ExLlamaV2Cache": "ExLlamaV2Cache",
        "ExLlamaV2Cache_Q4": "ExLlamaV2Cache_Q4",
        "ExLlamaV2Cache_TP": "ExLlamaV2Cache_TP",
        "ExLlamaV2Lora": "ExLlamaV2Lora",
        "ExLlamaV2VisionTower": "ExLlamaV2VisionTower",
        "generator.ExLlamaV2DynamicGenerator": "ExLlamaV2DynamicGenerator",
        "generator.ExLlamaV2DynamicJob": "ExLlamaV2DynamicJob",
    },
    "exllamav3": {
        name: name for name in ("Config", "Model", "Cache", "Tokenizer", "Generator", "Job")
    },
}


@pytest.mark.parametrize("package", PARTS)
def test_the_stand_ins_have_the_same_signatures(machine: Any, package: str) -> None:
    """Else the engines would be tested against something that the libraries are not."""
    checked = 0
    for place, name in PARTS[package].items():
        module, _, attribute = f"{package}.{place}".rpartition(".")
        stand_in = getattr(sys.modules[module], attribute)
        for file, methods in CALLED.items():
            for method, wanted in methods.items():
                if file.startswith(package) and method.partition(".")[0] == name:
                    called = method.partition(".")[2].replace("load_gen", "load")
                    taken = inspect.signature(getattr(stand_in, called)).parameters
                    keywords = {f"**{p.name}" for p in taken.values() if p.kind is p.VAR_KEYWORD}
                    assert set(wanted) <= set(taken) | keywords, method
                    checked += 1
    assert checked >= 12
