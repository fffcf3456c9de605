"""The hook that this plugin adds."""

from __future__ import annotations

from collections.abc import Sequence

from hookline import hookspec
from hookline_tools.format import ToolFormat


class ToolHooks:
    """What other plugins can implement."""

    @hookspec
    def tool_formats(self) -> Sequence[ToolFormat] | None:
        """Further ways in which models write tool calls; tried before the plugin's own."""
