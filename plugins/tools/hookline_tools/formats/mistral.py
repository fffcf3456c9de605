"""A list after a control token, as Mistral's models write it, and their newer way without JSON
around the arguments."""

from hookline_tools.format import ToolFormat

MISTRAL = ToolFormat(
    name="mistral",
    marks=("tools", "[TOOL_CALLS]"),
    trigger="[TOOL_CALLS]",
    open="[TOOL_CALLS][",
    before_name='{"name": "',
    after_name='", "arguments": ',
    end="}",
    separator=", ",
    close="]",
    id_length=9,
)

MISTRAL_ARGS = ToolFormat(
    name="mistral-args",
    marks=("tools", "[TOOL_CALLS]", "[ARGS]"),
    trigger="[TOOL_CALLS]",
    before_name="[TOOL_CALLS]",
    after_name="[ARGS]",
    end="",
    id_length=9,
)
