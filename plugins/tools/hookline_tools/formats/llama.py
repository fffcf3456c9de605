"""One bare JSON object, as Llama 3.1 and later write it."""

from hookline_tools.format import ToolFormat

LLAMA = ToolFormat(
    name="llama",
    marks=("tools", '"parameters": '),
    trigger="{",
    before_name='{"name": "',
    after_name='", "parameters": ',
    end="}",
    anywhere=False,
    parallel=False,
)
