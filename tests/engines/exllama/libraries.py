"""The real ExLlama libraries on a machine without a GPU: all of their Python, no compiled code.

What schedules, pages, reuses, speculates, cancels and tokenizes is theirs. In the place of their
CUDA code are the few functions that they call outside of the model; in the place of the model is
the same ``language`` as in the stand-ins. Its "keys" are the tokens themselves, written to and read
from the library's own KV memory by the page tables it makes: a page that is wrong, stale or shared
by mistake gives other tokens. What only kernels show (speed, quantization, memory given back) needs
a GPU.
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

PAGE = 256
PACKAGES = ("exllamav2", "exllamav3")
Language = Callable[[tuple[int, ...], int], Any]
"""From tokens and the size of the vocabulary to logits."""


def sources() -> list[str]:
    """Where the libraries and PyTorch are looked for, beside where Python looks."""
    folder = os.environ.get("EXLLAMA_SOURCES")
    return [folder] if folder else []


def are_here() -> bool:
    """Whether PyTorch and both libraries are on this machine."""
    with _found():
        return all(importlib.util.find_spec(name) for name in ("torch", *PACKAGES))


@contextmanager
def _found() -> Iterator[None]:
    kept = list(sys.path)
    sys.path += sources()
    try:
        yield
    finally:
        sys.path[:] = kept


class Libraries:
    """Both, imported once; ``modules`` is what ``sys.modules`` must hold while they are used."""

    def __init__(self, language: Language) -> None:
        self.path = sources()
        self._language = language
        self.modules: dict[str, Any] = {}
        before = set(sys.modules)
        with _found(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.torch = importlib.import_module("torch")
            if importlib.util.find_spec("triton") is None:
                # PyTorch without CUDA comes without Triton, whose decorators are applied on import.
                self.modules |= {"triton": MagicMock(), "triton.language": MagicMock()}
                sys.modules |= self.modules
            self.unpinned = Torch(self.torch)
            self._import_exllamav2()
            self._import_exllamav3()
        ours = set(sys.modules) - before
        for name in {name for name in ours if name.split(".")[0] in PACKAGES} | set(self.modules):
            self.modules[name] = sys.modules.pop(name)
        self.modules["torch"] = self.unpinned

    def has_pages(self, value: bool) -> None:
        """Whether flash-attn is there, without which ExLlamaV2 cannot share KV memory."""
        self.modules["exllamav2.attn"].has_flash_attn_with_paged = value

    def _import_exllamav3(self) -> None:
        compiled = ModuleType("exllamav3.ext")
        compiled.__dict__["exllamav3_ext"] = Kernels3("exllamav3_ext")
        sys.modules["exllamav3.ext"] = compiled
        package: Any = importlib.import_module("exllamav3")
        for name in ("generator", "job", "pagetable"):
            module: Any = importlib.import_module(f"exllamav3.generator.{name}")
            module.torch = self.unpinned
        build = package.Model.from_config
        package.Model.from_config = lambda *about, **more: self._on_cpu(build(*about, **more))

    def _on_cpu(self, model: Any) -> Any:
        """A model of ExLlamaV3's whose own forward pass is replaced."""

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
            size = model.config.vocab_size
            return self._logits(size, input_ids, layer.k[..., 0, 0], tables, starts)

        model.load, model.forward, model.prefill = load, forward, forward
        model.prefetch_tokens = lambda ids: None
        return model

    def _import_exllamav2(self) -> None:
        compiled = ModuleType("exllamav2.ext")
        about = {"make_q_matrix": None, "make_q_matrix_split": None, "none_tensor": None}
        compiled.__dict__.update(about, exllamav2_ext=Kernels2("exllamav2_ext"))
        compiled.__dict__["ext_c"] = compiled.__dict__["exllamav2_ext"]
        sys.modules["exllamav2.ext"] = compiled
        package: Any = importlib.import_module("exllamav2")
        importlib.import_module("exllamav2.generator")
        libraries = self

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
            else:
                tables = libraries.torch.arange(len(kept))[None]
                starts = libraries.torch.tensor([attn_params.past_len])
            cache.current_seq_len = int(starts[0]) + input_ids.shape[1]
            size = model.config.vocab_size
            return {"logits": libraries._logits(size, input_ids, kept, tables, starts)}

        package.ExLlamaV2.load_autosplit, package.ExLlamaV2.forward_chunk = load, forward

    def _logits(self, size: int, ids: Any, kept: Any, tables: Any, starts: Any) -> Any:
        """Of the shape ``(rows, tokens, vocabulary)``, padded as the libraries' heads are, for
        ``ids`` of the shape ``(rows, tokens)``. ``kept`` has the shape ``(pages, PAGE)``."""
        padded = -(-size // 32) * 32
        logits = self.torch.full((*ids.shape, padded), -65504.0)
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


class Kernels3(ModuleType):
    """What ExLlamaV3's Python calls of its compiled code, outside of the model."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{name} is compiled code"

    class BC_SAM:
        """Finds repetitions in a sequence."""

        def accept_tensor(self, sequence: Any) -> tuple[int, int]:
            """Where the longest end of the sequence stood before: its begin and end."""
            ids = sequence.flatten().tolist()
            best = (0, 0)
            for end in range(len(ids) - 1, 0, -1):
                length = 0
                while length < end and ids[end - 1 - length] == ids[-1 - length]:
                    length += 1
                best = max(best, (end - length, end), key=lambda found: found[1] - found[0])
            return best

    @staticmethod
    def count_match_tensor(one: Any, two: Any, most: int) -> int:
        """How many tokens are the same from the begin on."""
        pairs = zip(one.flatten().tolist()[:most], two.flatten().tolist(), strict=False)
        return next((at for at, (a, b) in enumerate(pairs) if a != b), min(most, two.numel()))

    @staticmethod
    def generator_stage_decode(
        arena: Any,
        width: int,
        tables: list[Any],
        starts: list[int],
        turns: list[int],
        ids: Any | None,
        sequences: list[Any],
        pages: list[Any],
        offsets: list[int],
    ) -> None:
        """Writes the tables and starts of a step, and each row's token where it has one only."""
        assert not turns
        rows = len(tables)
        written = arena[: rows * width].view(rows, width).zero_()
        for row, table in enumerate(tables):
            kept = table.flatten()[:width]
            written[row, : len(kept)] = kept
            arena[rows * width + row] = starts[row]
        for row, sequence in enumerate(sequences):
            token = sequence.flatten()[starts[row]]
            assert ids is not None
            ids[row] = token
            pages[row].view(-1)[offsets[row]] = token


class Kernels2(ModuleType):
    """What ExLlamaV2's Python calls of its compiled code, outside of the model."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{name} is compiled code"

    count_match = staticmethod(Kernels3.count_match_tensor)

    @staticmethod
    def sample_basic(logits: Any, *about: Any) -> list[float]:
        """Greedy sampling: writes the tokens and their shares into two of the arguments."""
        tokens, shares = about[8], about[9]
        tokens[:, 0] = logits[:, -1].argmax(-1)
        shares[:, 0] = logits[:, -1].softmax(-1).amax(-1)
        return []


class Torch(ModuleType):
    """PyTorch as it looks where there is a GPU, as far as nothing is computed on it."""

    def __init__(self, real: Any) -> None:
        super().__init__("torch")
        self._real = real
        self.__spec__ = real.__spec__
        self.cuda = Cuda()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def empty(self, *shape: Any, pin_memory: bool = False, **about: Any) -> Any:
        """Memory, which only a GPU can pin."""
        return self._real.empty(*shape, **about)

    def zeros(self, *shape: Any, pin_memory: bool = False, **about: Any) -> Any:
        """Memory, which only a GPU can pin."""
        return self._real.zeros(*shape, **about)


class Cuda:
    """The GPU."""

    def is_available(self) -> bool:
        return True

    def synchronize(self, *device: Any) -> None:
        """Nothing runs."""

    def empty_cache(self) -> None:
        """Nothing is held."""
