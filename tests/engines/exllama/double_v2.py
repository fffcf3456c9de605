"""The stand-in for ``exllamav2``, with the names and parameters of its public face."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any


def exllamav2(double: Any, machine: Any) -> dict[str, ModuleType]:  # noqa: C901 - classes, no branches
    """The package's modules on a machine; ``double`` is the module with what both share."""

    class Config:
        def __init__(self, model_dir: str | None = None) -> None:
            content = double.read_config(model_dir)
            self.vocab_size = content["vocab_size"]
            self.max_seq_len = content["max_position_embeddings"]
            self.max_input_len = 2048
            self.max_batch_size = 1
            self.no_flash_attn = machine.no_flash_attn
            self.vision_model_type = content.get("vision_config", {}).get("model_type")

        def arch_compat_overrides(self, quiet: bool = False, warn_only: bool = False) -> None:
            machine.events.append("overrides")

    class Model:
        what = "text"

        def __init__(self, config: Config, lazy_load: bool = False) -> None:
            self.config = config

        def load(self, gpu_split: Any = None, lazy: bool = False, callback: Any = None) -> None:
            machine.load(self.what, callback)
            machine.made[f"load {self.what}"] = {"gpu_split": gpu_split}

        def load_tp(
            self,
            gpu_split: Any = None,
            callback: Any = None,
            expect_cache_tokens: int = 0,
            expect_cache_base: Any = None,
        ) -> None:
            machine.load("in parallel", callback)

        def load_autosplit(
            self, cache: Any, reserve_vram: Any = None, callback: Any = None
        ) -> None:
            assert cache.lazy, "the cache must be lazy"
            config = self.config
            config.max_input_len = min(config.max_input_len, config.max_seq_len)
            machine.load(self.what, callback)

        def unload(self) -> None:
            machine.events.append(f"unload {self.what}")

    class VisionTower(Model):
        what = "vision"

        def get_image_embeddings(
            self, model: Model, tokenizer: Any, image: Any, text_alias: str | None = None
        ) -> Any:
            return double.embed(machine, image)

    class Cache(double.Cache):  # type: ignore[misc]
        def __init__(
            self,
            model: Model,
            batch_size: int = 1,
            max_seq_len: int = -1,
            copy_from: Any = None,
            lazy: bool = False,
        ) -> None:
            super().__init__(model, max_seq_len)
            self.lazy = lazy
            machine.made["cache"] = {"kind": type(self).__name__, "tokens": max_seq_len}

        def footprint(self) -> list[int]:
            return [1024, 1024]

    class Cache_Q4(Cache): ...

    class Cache_Q6(Cache): ...

    class Cache_Q8(Cache): ...

    class Cache_TP(double.Cache):  # type: ignore[misc]
        def __init__(
            self, model: Model, base: Any = Cache, batch_size: int = 1, max_seq_len: int = -1
        ) -> None:
            super().__init__(model, max_seq_len)
            machine.made["cache"] = {"kind": "Cache_TP", "tokens": max_seq_len}

    class Lora:
        @staticmethod
        def from_directory(model: Model, directory: str, lora_scaling: float = 1.0) -> Lora:
            if not (Path(directory) / "adapter_model.safetensors").exists():
                raise ValueError(f"No LoRA found in {directory}")
            return Lora()

        def unload(self) -> None:
            machine.events.append("unload lora")

    class Settings:
        @staticmethod
        def greedy(**kwargs: Any) -> Settings:
            return Settings()

    class Job(double.Job):  # type: ignore[misc]
        def __init__(
            self,
            input_ids: Any,
            max_new_tokens: int,
            gen_settings: Any = None,
            seed: int | None = None,
            stop_conditions: Any = None,
            filters: list[Any] | None = None,
            embeddings: list[Any] | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(input_ids, max_new_tokens, embeddings)
            assert isinstance(gen_settings, Settings)
            self.filters = filters or []

        def sample(self, logits: Any) -> int:
            """As ``ExLlamaV2Sampler.sample`` does where all filters mask."""
            if self.new == 0:
                for one in self.filters:
                    one.background_drop()
                    one.begin("")
            for one in self.filters:
                assert one.can_mask_logits() and one.get_next(mask=True) is True
                logits = one.mask_logits(logits)
            token = int(logits.array.argmax())
            for one in self.filters:
                one.feed(double.Tensor([[token]]))
                assert not one.use_background_worker()
            return token

    class Generator(double.DynamicGenerator):  # type: ignore[misc]
        def __init__(
            self,
            model: Model,
            cache: Any,
            tokenizer: Any,
            max_batch_size: int | None = None,
            max_q_size: int = 8,
            draft_model: Model | None = None,
            draft_cache: Any = None,
            num_draft_tokens: int = 4,
            use_ngram_draft: bool = False,
            max_sampling_threads: int = 16,
            paged: bool = True,
            **kwargs: Any,
        ) -> None:
            assert paged <= machine.paged, "Paged attention required Flash Attention 2.5.7 or later"
            assert not (paged and model.config.no_flash_attn)
            assert paged or max_batch_size == 1
            assert max_sampling_threads == 1, "jobs would choose in other threads"
            drafts = num_draft_tokens if draft_model or use_ngram_draft else 0
            assert drafts < max_q_size
            config, batch = model.config, max_batch_size or 256
            assert max_q_size * batch <= config.max_batch_size * config.max_input_len
            assert not paged or config.max_input_len % 256 == 0, "must be multiple of 256"
            super().__init__(machine, model.config.vocab_size, cache, batch, drafts)
            self.page_size = 256 if paged else cache.tokens

        def _limit(self, job: Any) -> int:
            return int(job.most - self.drafts)

        def set_loras(self, loras: Any) -> None:
            machine.events.append(f"{len(loras)} lora")

    public = {
        "ExLlamaV2": Model,
        "ExLlamaV2Config": Config,
        "ExLlamaV2Cache": Cache,
        "ExLlamaV2Cache_Q4": Cache_Q4,
        "ExLlamaV2Cache_Q6": Cache_Q6,
        "ExLlamaV2Cache_Q8": Cache_Q8,
        "ExLlamaV2Cache_TP": Cache_TP,
        "ExLlamaV2Lora": Lora,
        "ExLlamaV2Tokenizer": lambda config: object(),
        "ExLlamaV2VisionTower": VisionTower,
    }
    generator = {
        "ExLlamaV2DynamicGenerator": Generator,
        "ExLlamaV2DynamicJob": Job,
        "ExLlamaV2Sampler": type("ExLlamaV2Sampler", (), {"Settings": Settings}),
    }
    return {
        "exllamav2": double.module("exllamav2", **public),
        "exllamav2.generator": double.module("exllamav2.generator", **generator),
        "exllamav2.attn": double.module("exllamav2.attn", has_flash_attn_with_paged=machine.paged),
    }
