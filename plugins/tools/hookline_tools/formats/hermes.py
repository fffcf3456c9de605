"""Tagged JSON, as Hermes, Qwen and most others write it."""

from hookline_tools.format import ToolFormat

HERMES = ToolFormat(
    name="hermes",
    marks=("tools", "<tool_call>"),
    trigger="<tool_call>",
    before_name='<tool_call>\n{"name": "',
    after_name='", "arguments": ',
    end="}\n</tool_call>",
    separator="\n",
)
