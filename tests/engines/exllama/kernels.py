"""What stands in for the ExLlama libraries' compiled code, and for the GPU that PyTorch misses."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class Kernels(ModuleType):
    """A compiled module. Every name can be imported from it; what is not written out below is a
    text, which fails the test that calls it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{name} is compiled code"


def count_match(one: Any, two: Any, most: int) -> int:
    """How many tokens are the same from the begin on."""
    pairs = zip(one.flatten().tolist()[:most], two.flatten().tolist(), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(most, two.numel()))


class Kernels3(Kernels):
    """What ExLlamaV3's Python calls of its compiled code, outside of the model."""

    count_match_tensor = staticmethod(count_match)

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
    def generator_stage_decode(
        arena: Any,
        width: int,
        tables: list[Any],
        starts: list[int],
        rope_offsets: list[int],
        ids: Any | None,
        sequences: list[Any],
        pages: list[Any],
        offsets: list[int],
    ) -> None:
        """Writes the page tables and starts of a step into ``arena``; and where each row has one
        token only, that token into ``ids`` and to its offset in the list of the page's tokens."""
        assert not rope_offsets, "only prompts with images have any"
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


class Kernels2(Kernels):
    """What ExLlamaV2's Python calls of its compiled code, outside of the model."""

    count_match = staticmethod(count_match)

    @staticmethod
    def sample_basic(logits: Any, *about: Any) -> list[float]:
        """Greedy sampling: writes the tokens and their probabilities into two of the arguments."""
        tokens, probabilities = about[8], about[9]
        tokens[:, 0] = logits[:, -1].argmax(-1)
        probabilities[:, 0] = logits[:, -1].softmax(-1).amax(-1)
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
