"""The formats that come with the plugin, one a file."""

from __future__ import annotations

from collections.abc import Sequence

from hookline import StartError
from hookline_tools.format import ToolFormat
from hookline_tools.formats.deepseek import DEEPSEEK, DEEPSEEK_BARE
from hookline_tools.formats.generic import GENERIC
from hookline_tools.formats.hermes import HERMES
from hookline_tools.formats.llama import LLAMA
from hookline_tools.formats.mistral import MISTRAL, MISTRAL_ARGS
from hookline_tools.formats.qwen_coder import QWEN_CODER

FORMATS: tuple[ToolFormat, ...] = (
    *(MISTRAL_ARGS, MISTRAL, DEEPSEEK, DEEPSEEK_BARE, QWEN_CODER, HERMES, LLAMA, GENERIC),
)
"""In the order in which they are tried: those with more marks before those with fewer."""


def choose(name: str, template: str, added: Sequence[ToolFormat]) -> ToolFormat:
    """The format by its name, or for ``auto`` the first that suits a chat template; those that
    plugins added come first. Raises StartError for a name that nothing has."""
    known = [*added, *FORMATS]
    if name == "auto":
        return next((form for form in known if form.suits(template)), GENERIC)
    for form in known:
        if form.name == name:
            return form
    names = ", ".join(["auto", *(form.name for form in known)])
    raise StartError(f"[plugin.tools] format: there is no '{name}'; there are {names}.")
