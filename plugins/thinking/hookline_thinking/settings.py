"""What can be set and asked for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Budget = Annotated[int, Field(ge=1)]
Tag = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Budgets(_Strict):
    """Most tokens of a thought, by effort."""

    low: Budget = 256
    medium: Budget = 1024
    high: Budget = 4096


class TagSettings(_Strict):
    """The tags around a thought; what is left out follows from the chat template."""

    begin: Tag | None = Field(None, description="Opens a thought, such as <think>.")
    end: Tag | None = Field(None, description="Closes a thought, such as </think>.")
    opened: bool | None = Field(
        None, description="Whether the chat template opens the thought; by default it is looked at."
    )


class ThinkingSettings(TagSettings):
    """``[plugin.thinking]``"""

    force: bool = Field(
        False, description="Make models think whose chat template knows nothing of it."
    )
    instruction: str = Field(
        "Think step by step before you answer. End your thoughts with {end}, then answer.",
        description="What such models are told.",
    )
    closing: str = Field(
        "", description="Said before the end tag when a thought has spent its tokens."
    )
    budgets: Budgets = Field(Budgets(), description="Most tokens of a thought, by effort.")
    models: dict[str, TagSettings] = Field(default={}, description="Tags of models, by their id.")


class ThinkingFields(BaseModel):
    """What a request can ask for."""

    enable_thinking: bool = Field(False, description="Think before answering.")
    reasoning_effort: Literal["none", "low", "medium", "high"] = Field(
        "high", description="How long to think, where thinking is on; 'none' turns it off."
    )
    thinking_budget: int | None = Field(
        None, ge=0, description="Most tokens of the thought, instead of an effort; 0 turns it off."
    )
