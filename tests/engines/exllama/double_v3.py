"""The stand-in for ``exllamav3``, with the names and parameters of its public face."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any


def exllamav3(double: Any, machine: Any) -> ModuleType:  # noqa: C901 - classes, no branches
    """The package on a machine; ``double`` is the module with what both versions share."""

    class Config:
        def __init__(self, directory: str) -> None:
            self.directory = directory
            self.content = double.read_config(directory)
            self.vocab_size = self.content["vocab_size"]
            vision = {"vision": Model} if "vision_config" in self.content else {}
            self.model_classes = {"text": Model, **vision}

        @staticmethod
        def from_directory(directory: str, **kwargs: Any) -> Config:
            return Config(directory)

    class Model:
        def __init__(self, config: Config, component: str) -> None:
            self.config, self.component = config, component

        @staticmethod
        def from_config(config: Config, component: str = "text", **kwargs: Any) -> Model:
            assert component in config.model_classes
            return Model(config, component)

        def load(
            self,
            device: Any = None,
            reserve_per_device: Any = None,
            use_per_device: list[float] | None = None,
            tensor_p: bool = False,
            progressbar: bool = False,
            callback: Any = None,
            max_batch_size: int = 1,
        ) -> None:
            machine.load(self.component, callback)
            split = {"use_per_device": use_per_device, "tensor_p": tensor_p}
            machine.made[f"load {self.component}"] = split

        def unload(self) -> None:
            machine.events.append(f"unload {self.component}")

        def get_image_embeddings(
            self, tokenizer: Any, image: Any, text_alias: str | None = None
        ) -> Any:
            return double.embed(machine, image)

    class CacheLayer_fp16:
        bits = 16

    class CacheLayer_quant:
        bits = 0

    class Cache(double.Cache):  # type: ignore[misc]
        def __init__(
            self,
            model: Model,
            max_num_tokens: int,
            layer_type: Any = None,
            max_batch_size: int = 16,
            max_history: int = 0,
            **kwargs: Any,
        ) -> None:
            super().__init__(model, max_num_tokens)
            assert "load text" not in machine.events or machine.events[-1].startswith(
                ("unload", "freed", "load")
            ), "Construct the Cache BEFORE calling model.load()"
            machine.made["cache"] = {"layer_type": layer_type, "tokens": max_num_tokens, **kwargs}
            layer = type("Layer", (), {"storage_size": lambda self: 1024})
            self.layers = {0: layer(), 1: layer()}

    class Tokenizer:
        @staticmethod
        def from_config(config: Config) -> Tokenizer:
            return Tokenizer()

    class Job(double.Job):  # type: ignore[misc]
        def __init__(
            self,
            input_ids: Any,
            max_new_tokens: int | None = None,
            sampler: Any = None,
            seed: int | None = None,
            stop_conditions: Any = None,
            embeddings: list[Any] | None = None,
            **kwargs: Any,
        ) -> None:
            assert max_new_tokens is None or max_new_tokens >= 1, "max_new_tokens must be >= 1"
            super().__init__(input_ids, max_new_tokens, embeddings)
            self.sampler = sampler

        def sample(self, logits: Any) -> int:
            past = double.Tensor([self.ids]) if self.sampler.reqs_past_ids else None
            shaped = double.Tensor(logits.array[None, None, :])
            token = self.sampler.forward(shaped, past, 2**32 - 1, None, logit_mask=None)
            assert token.shape == (1, 1)
            return int(token.item())

    class Generator(double.DynamicGenerator):  # type: ignore[misc]
        def __init__(
            self,
            model: Model,
            cache: Cache,
            tokenizer: Tokenizer,
            max_batch_size: int = 256,
            draft_model: Model | None = None,
            draft_cache: Cache | None = None,
            num_draft_tokens: int | None = None,
            ngram_match_min: int = 0,
            **kwargs: Any,
        ) -> None:
            assert not (draft_model and ngram_match_min), "Cannot use both"
            drafts = num_draft_tokens if draft_model or ngram_match_min else 0
            vocabulary = model.config.vocab_size
            super().__init__(machine, vocabulary, cache, max_batch_size, drafts or 0)

        def _samples(self, job: Any, rows: list[Any]) -> Iterator[int]:
            """All at once where the sampler does not ask for the tokens so far."""
            if job.sampler.reqs_past_ids:
                one_by_one: Iterator[int] = super()._samples(job, rows)
                return one_by_one
            return iter([job.sample(row) for row in rows])

        def close(self) -> None:
            machine.events.append("generator closed")

    made: ModuleType = double.module(
        "exllamav3",
        Config=Config,
        Model=Model,
        Cache=Cache,
        CacheLayer_fp16=CacheLayer_fp16,
        CacheLayer_quant=CacheLayer_quant,
        Tokenizer=Tokenizer,
        Generator=Generator,
        Job=Job,
    )
    return made
