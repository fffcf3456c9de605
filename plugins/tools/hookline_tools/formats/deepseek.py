"""Control tokens around each part of a call, as DeepSeek's models write it: V3 and R1 with a fence
around the arguments, V3.1 and later without."""

from hookline_tools.format import ToolFormat

DEEPSEEK = ToolFormat(
    name="deepseek",
    marks=("<｜tool▁calls▁begin｜>", "```json"),
    trigger="<｜tool▁calls▁begin｜>",
    open="<｜tool▁calls▁begin｜>",
    before_name="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    after_name="\n```json\n",
    end="\n```<｜tool▁call▁end｜>",
    separator="\n",
    close="<｜tool▁calls▁end｜>",
)

DEEPSEEK_BARE = ToolFormat(
    name="deepseek-bare",
    marks=("<｜tool▁calls▁begin｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    open="<｜tool▁calls▁begin｜>",
    before_name="<｜tool▁call▁begin｜>",
    after_name="<｜tool▁sep｜>",
    end="<｜tool▁call▁end｜>",
    close="<｜tool▁calls▁end｜>",
)
