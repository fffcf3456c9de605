"""What can be set and asked for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

MOST_TOOLS = 128
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]


class ToolsSettings(BaseModel):
    """``[plugin.tools]``"""

    model_config = ConfigDict(extra="forbid")

    format: str = Field(
        "auto", description="How the model writes calls; 'auto' follows the chat template."
    )
    longest_text: int = Field(
        400,
        ge=1,
        description="Most characters of a text argument without a bound of its own, where a model "
        "that was not taught to call must call.",
    )


class Function(BaseModel):
    """A function that the model may call."""

    model_config = ConfigDict(extra="allow")

    name: Name
    description: str | None = None
    parameters: dict[str, JsonValue] | None = Field(
        None, description="JSON schema of the arguments, an object; without it there are none."
    )
    strict: bool | None = Field(None, description="Arguments match the schema in any case.")


class Tool(BaseModel):
    """A tool that the model may call."""

    model_config = ConfigDict(extra="allow")

    type: Literal["function"]
    function: Function

    def for_template(self) -> dict[str, Any]:
        """The tool as chat templates expect it, as it came but for what is null."""
        return self.model_dump(exclude_none=True)


class FunctionName(BaseModel):
    """Which function."""

    name: str


class NamedTool(BaseModel):
    """One tool by its name."""

    type: Literal["function"]
    function: FunctionName


class AllowedTools(BaseModel):
    """Some of the tools, which may be called or of which one must be."""

    mode: Literal["auto", "required"]
    tools: list[NamedTool] = Field(min_length=1)


class AllowedToolsChoice(BaseModel):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ChosenTools = Annotated[NamedTool | AllowedToolsChoice, Field(discriminator="type")]


class ToolsFields(BaseModel):
    """What a request can ask for."""

    tools: list[Tool] = Field(
        default=[], max_length=MOST_TOOLS, description="Functions that the model may call."
    )
    tool_choice: Literal["none", "auto", "required"] | ChosenTools | None = Field(
        None,
        description="Whether it may call (auto), must (required, or a tool by name), or not.",
    )
    parallel_tool_calls: bool = Field(True, description="Whether it may call several at once.")
