"""The real ExLlama libraries on a machine without a GPU: all of their Python, no compiled code.

What schedules, pages, reuses, speculates, cancels and tokenizes is theirs. Replaced are

* the compiled functions that their Python calls outside of the model, and the GPU that PyTorch
  does not find, by what is in ``kernels.py``;
* the model's forward pass, by the ``language`` of the stand-ins (`Libraries.logits`). Its "keys"
  are the tokens themselves, written to and read from the library's own KV memory by the page
  tables that it makes: a page that is wrong, stale or shared by mistake gives other tokens.

What only kernels show (speed, quantization, memory given back) needs a GPU.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

PACKAGES = ("exllamav2", "exllamav3")
PAGE = 256
"""Tokens of a page of KV memory, in both."""

LOWEST = -65504.0
"""Of half precision: the logit of those columns that only fill up the head."""

Language = Callable[[tuple[int, ...], int], Any]
"""From tokens and the size of the vocabulary to logits."""


def sources() -> list[str]:
    """Where the libraries and PyTorch are looked for, beside where Python looks."""
    folder = os.environ.get("EXLLAMA_SOURCES")
    return [folder] if folder else []


def are_here() -> bool:
    """Whether PyTorch and both libraries are on this machine."""
    with _findable():
        return all(importlib.util.find_spec(name) for name in ("torch", *PACKAGES))


@contextmanager
def _findable() -> Iterator[None]:
    kept = list(sys.path)
    sys.path += sources()
    try:
        yield
    finally:
        sys.path[:] = kept


def _without_triton() -> dict[str, Any]:
    """What to import in the place of Triton, whose decorators are applied on import, and which
    PyTorch without CUDA comes without."""
    if importlib.util.find_spec("triton") is not None:
        return {}
    return {"triton": MagicMock(), "triton.language": MagicMock()}


class Libraries:
    """Both, imported once; ``modules`` is what ``sys.modules`` must hold while they are used."""

    def __init__(self, language: Language, kernels: Any) -> None:
        self.path = sources()
        self._language = language
        self._kernels = kernels
        before = set(sys.modules)
        with _findable(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.torch = importlib.import_module("torch")
            self.torch_with_gpu = kernels.Torch(self.torch)
            absent = _without_triton()
            sys.modules |= absent
            self._import_exllamav2()
            self._import_exllamav3()
        own = {name for name in set(sys.modules) - before if name.split(".")[0] in PACKAGES}
        self.modules = {name: sys.modules.pop(name) for name in own | set(absent)}
        self.modules["torch"] = self.torch_with_gpu

    def _import_exllamav3(self) -> None:
        compiled = ModuleType("exllamav3.ext")
        compiled.__dict__["exllamav3_ext"] = self._kernels.Kernels3("exllamav3_ext")
        sys.modules["exllamav3.ext"] = compiled
        package: Any = importlib.import_module("exllamav3")
        for name in ("generator", "job", "pagetable"):  # those that pin memory
            module: Any = importlib.import_module(f"exllamav3.generator.{name}")
            module.torch = self.torch_with_gpu
        build = package.Model.from_config
        package.Model.from_config = lambda *about, **more: self._on_cpu(build(*about, **more))

    def _on_cpu(self, model: Any) -> Any:
        """A model of ExLlamaV3's that loads nothing but its KV memory, and whose forward pass is
        replaced."""

        def load(callback: Callable[[int, int], None], **about: Any) -> None:
            for module in model.get_cache_layers():
                for layer in module.cache_layers:
                    layer.alloc("cpu")
            for reference in model.cache_weakrefs.values():
                reference().initialized = True
            model.output_device = "cpu"
            callback(1, 1)

        def forward(input_ids: Any, params: dict[str, Any]) -> Any:
            (layer,) = params["cache"].layers.values()
            tables, starts = params["block_table"], params["cache_seqlens"]
            kept = layer.k[..., 0, 0]  # a number of each token's key holds the token
            return self.logits(model.config.vocab_size, input_ids, kept, tables, starts)

        model.load, model.forward, model.prefill = load, forward, forward
        model.prefetch_tokens = lambda ids: None  # to the GPU
        return model

    def _import_exllamav2(self) -> None:
        compiled = ModuleType("exllamav2.ext")
        kernels = self._kernels.Kernels2("exllamav2_ext")
        names = {"make_q_matrix": None, "make_q_matrix_split": None, "none_tensor": None}
        compiled.__dict__.update(names, exllamav2_ext=kernels, ext_c=kernels)
        sys.modules["exllamav2.ext"] = compiled
        package: Any = importlib.import_module("exllamav2")
        importlib.import_module("exllamav2.generator")
        # As with flash-attn, without which this version shares no pages.
        attention: Any = importlib.import_module("exllamav2.attn")
        attention.has_flash_attn_with_paged = True

        def load(model: Any, cache: Any, callback: Callable[[int, int], None]) -> None:
            model.cache_map = {0: "cpu"}
            cache.update_cache_tensors()
            cache.footprint = lambda: [1]  # its own counts by the number of the GPU
            callback(1, 1)

        def forward(
            model: Any, input_ids: Any, cache: Any, attn_params: Any, **about: Any
        ) -> dict[str, Any]:
            kept = cache.key_states[0][0, :, 0, 0].view(-1, PAGE)
            if hasattr(attn_params, "block_index"):
                tables, starts = attn_params.block_index, attn_params.cache_seqlens
            else:  # without pages: one sequence, from the first page to the last
                tables = self.torch.arange(len(kept))[None]
                starts = self.torch.tensor([attn_params.past_len])
            cache.current_seq_len = int(starts[0]) + input_ids.shape[1]
            size = model.config.vocab_size
            return {"logits": self.logits(size, input_ids, kept, tables, starts)}

        package.ExLlamaV2.load_autosplit, package.ExLlamaV2.forward_chunk = load, forward

    def logits(self, size: int, ids: Any, kept: Any, tables: Any, starts: Any) -> Any:
        """Writes the tokens ``ids`` to KV memory, and gives what follows each of them.

        ``ids`` has the shape ``(rows, tokens)``, ``kept`` ``(pages, PAGE)``; ``tables`` are the
        pages of each row, and ``starts`` how many tokens it had before. The result has the shape
        ``(rows, tokens, vocabulary)``, the last filled up as the libraries' heads do.
        """
        filled = -(-size // 32) * 32
        logits = self.torch.full((*ids.shape, filled), LOWEST)
        rows = zip(ids.tolist(), tables.tolist(), starts.tolist(), strict=True)
        for row, (tokens, table, start) in enumerate(rows):
            for column, token in enumerate(tokens):
                place = start + column
                kept[table[place // PAGE], place % PAGE] = token
                pages = kept[table[: place // PAGE + 1]].flatten()[: place + 1]
                read = tuple(int(number) for number in pages.tolist())
                known = self.torch.from_numpy(self._language(read, size))
                logits[row, column, :size] = known
        return logits
