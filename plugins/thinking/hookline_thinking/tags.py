"""The tags around a model's thoughts, and what its chat template says about them."""

from __future__ import annotations

from dataclasses import dataclass

from hookline_thinking.settings import TagSettings, ThinkingSettings

KNOWN = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)
"""Pairs that models use. The first is the default."""


@dataclass(frozen=True, slots=True)
class Tags:
    """How a model marks a thought.

    ``opened``: whether its chat template opens the thought; None where the prompt tells.
    ``native``: whether the model knows how to think by itself.
    """

    begin: str
    end: str
    opened: bool | None
    native: bool

    @classmethod
    def of_model(cls, name: str, template: str, settings: ThinkingSettings) -> Tags:
        """The tags of a model: its own settings, then those of all models, then the template."""
        own = settings.models.get(name, TagSettings())
        seen = next((pair for pair in KNOWN if any(tag in template for tag in pair)), None)
        begin, end = seen or KNOWN[0]
        return cls(
            begin=own.begin or settings.begin or begin,
            end=own.end or settings.end or end,
            opened=settings.opened if own.opened is None else own.opened,
            native=seen is not None or "enable_thinking" in template or name in settings.models,
        )

    def beginning(self, prompt: str, *, thinks: bool) -> str:
        """What the answer begins with: a thought is opened, or the template's is closed."""
        opened = prompt.rstrip().endswith(self.begin) if self.opened is None else self.opened
        if thinks:
            return "" if opened else f"{self.begin}\n"
        return f"\n{self.end}\n\n" if opened else ""
