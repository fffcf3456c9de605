"""Tool calls as ReAct models write them."""

from __future__ import annotations

from collections.abc import Sequence

from hookline import hookimpl
from hookline_tools import ToolFormat

REACT = ToolFormat(
    name="react",
    marks=("Action Input:",),
    trigger="Action:",
    before_name="Action: ",
    after_name="\nAction Input: ",
    end="\n",
)


class ReActCalls:
    """The plugin; it adds to the plugin `tools`, which must be on."""

    @hookimpl
    def tool_formats(self) -> Sequence[ToolFormat]:
        """One more format."""
        return [REACT]
