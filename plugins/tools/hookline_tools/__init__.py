"""Tool calls whose arguments always match the tool's schema.

`ToolFormat` is how a model writes its calls. A plugin that adds one builds on this package.
"""

from hookline_tools.arguments import ArgumentStyle, JsonArguments
from hookline_tools.format import ToolFormat
from hookline_tools.plugin import Tools
from hookline_tools.reading import Reading, Text
from hookline_tools.settings import ToolsFields, ToolsSettings

__all__ = [
    "ArgumentStyle",
    "JsonArguments",
    "Reading",
    "Text",
    "ToolFormat",
    "Tools",
    "ToolsFields",
    "ToolsSettings",
]
