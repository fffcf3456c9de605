"""Writes the parts of these pages that follow from the code: `python docs/generate.py`.

A test asserts that what it would write is what is there.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hookline.config import Settings
from hookline.config.fields import submodel
from hookline.config.template import toml_value
from hookline.hookspecs import Hooks

DOCS = Path(__file__).parent

MOMENTS = {
    "lifespan": "once, when the server starts",
    "routes": "once, when the server is built",
    "commands": "once, when the command line needs a command that is not Hookline's own, and when "
    "`hookline serve` starts, which tells of names that are taken",
    "list_models": "at each `GET /v1/models`",
    "create_engine": "once, after `lifespan`, in a thread",
    "authenticate": "at each request, before the body is read",
    "admit": "at each generation request, once the body is valid",
    "transform": "at each chat request, after `admit`",
    "template_vars": "at each chat request, after `transform`",
    "render_prompt": "at each chat request, after `template_vars`, once or several times",
    "begin_answer": "at each chat request, after each `render_prompt`",
    "shape_job": "at each generation request, once a prompt, after `begin_answer`",
    "stage": "at each generation request, once a choice, after `shape_job`",
    "response_headers": "at each generation request, once its jobs are in the queue",
    "opening_fields": "at each generation request, for its first chunk or its body",
    "closing_fields": "at each generation request, for its last chunk or its body",
    "settle": "at each generation request that began, when it is over",
    "create_constraint": "when something asks `server.constraint(…)`",
    "parse_document": "when something asks `server.parse_document(…)`",
    "create_embedder": "when something asks `server.embedder(…)` for one that is not made yet",
}
"""When each hook is called. The order is the order within a request."""


def specs() -> Mapping[str, Callable[..., Any]]:
    """Every hook's specification by name, as they stand in the contract."""
    return {name: spec for name, spec in vars(Hooks).items() if hasattr(spec, "hookline_spec")}


def examples() -> Mapping[str, str]:
    """The source of each method of the example plugin, by name."""
    text = (DOCS / "hooks" / "example.py").read_text(encoding="utf-8")
    classes = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    lines = text.splitlines()
    return {
        method.name: "\n".join(lines[method.decorator_list[0].lineno - 1 : method.end_lineno])
        for method in classes["Example"].body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.decorator_list
    }


def hook_page(name: str) -> str:
    """The page of one hook."""
    return f"""\
# {name}

Called {MOMENTS[name]}; {kind(name)}.

```python
{signature(name)}
```

{markdown(inspect.getdoc(specs()[name]) or "")}

For example:

```python
{textwrap.dedent(examples()[name])}
```
"""


def kind(name: str) -> str:
    """How the plugins' answers to a hook are combined."""
    options = specs()[name].hookline_spec  # type: ignore[attr-defined]
    colour = "async def" if inspect.iscoroutinefunction(specs()[name]) else "def"
    how = "the first answer counts" if options["firstresult"] else "every plugin is called"
    return f"{how}; written with `{colour}`"


def signature(name: str) -> str:
    """The specification without its body and its marker."""
    source = textwrap.dedent(inspect.getsource(specs()[name]))
    head = re.search(r"^(?:async )?def .*?:\n(?= {4}\")", source, re.DOTALL | re.MULTILINE)
    if head is None:
        raise ValueError(f"the hook '{name}' has no docstring")
    return head[0].rstrip()


def markdown(docstring: str) -> str:
    """A docstring's literals as Markdown has them."""
    return docstring.replace("``", "`")


def hook_index() -> str:
    """The list of all hooks."""
    rows = "\n".join(f"| [{name}]({name}.md) | {MOMENTS[name]} |" for name in MOMENTS)
    return f"""\
# Hooks

Every hook a plugin can implement, in the order in which they are called. The contract itself is
`hookline/hookspecs.py`; [how to write a plugin](../plugins.md) says the rest. The examples are from
[example.py](example.py), a plugin that implements them all and that the tests run.

| hook | called |
|---|---|
{rows}
"""


def settings_tables() -> str:
    """Every setting, table by table."""
    top: list[str] = []
    tables: list[str] = []
    for name, info in Settings.model_fields.items():
        model = submodel(info.annotation)
        if model is None:
            top.append(_row(name, info))
        else:
            summary = (model.__doc__ or "").partition(": ")[2].partition("\n")[0]
            rows = [_row(inner, field) for inner, field in model.model_fields.items()]
            tables.append(_table(f"`[{name}]`", summary, rows))
    return "\n".join([_table("Outside of tables", "for the whole server.", top), *tables])


def _table(title: str, summary: str, rows: list[str]) -> str:
    head = "| setting | default | meaning |\n|---|---|---|"
    return "\n".join([f"### {title}\n\n{summary[:1].upper() + summary[1:]}\n", head, *rows]) + "\n"


def _row(name: str, info: FieldInfo) -> str:
    return f"| `{name}` | {_default(name, info)} | {info.description} |"


def _default(name: str, info: FieldInfo) -> str:
    if name == "data_dir":
        return "the platform's"  # differs from machine to machine
    value = info.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined:
        return ""
    return f"`{toml_value(value.model_dump() if isinstance(value, BaseModel) else value)}`"


def with_section(text: str, name: str, content: str) -> str:
    """A page with the generated part between its two marks replaced."""
    begin, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no '{begin}' … '{end}'")
    return f"{before}{begin}\n\n{content}\n{end}{after}"


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page with the text it should have."""
    yield DOCS / "hooks" / "README.md", hook_index()
    for name in specs():
        yield DOCS / "hooks" / f"{name}.md", hook_page(name)
    configuration = DOCS / "configuration.md"
    text = configuration.read_text(encoding="utf-8")
    yield configuration, with_section(text, "settings", settings_tables())


def main() -> None:
    """Writes what has changed."""
    for path, text in pages():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS)}")


if __name__ == "__main__":
    main()
