"""Lines of TOML statements, and origins by place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookline.config.origins import Origin, Origins, leaves, toml_lines
from hookline.config.template import toml_value

TEXT = '''\
# comment
top = 1
list = [
  "# no comment",
  "[no.table]",
]
long = """
[server]
port = 5
"""

[server]
port = 80  # why
a.b = 2
inline = { x = 1, y = { z = 2 } }
[plugin."with.dot".deep]
q = 1
[[array]]
first = 1
[[array]]
second = 2
'''


def test_every_statement_has_the_line_on_which_it_begins() -> None:
    assert toml_lines(TEXT) == {
        ("top",): 2,
        ("list",): 3,
        ("long",): 7,
        ("server",): 12,
        ("server", "port"): 13,
        ("server", "a"): 14,
        ("server", "a", "b"): 14,
        ("server", "inline"): 15,
        ("server", "inline", "x"): 15,
        ("server", "inline", "y"): 15,
        ("server", "inline", "y", "z"): 15,
        ("plugin",): 16,
        ("plugin", "with.dot"): 16,
        ("plugin", "with.dot", "deep"): 16,
        ("plugin", "with.dot", "deep", "q"): 17,
        ("array",): 18,
        ("array", "first"): 19,
        ("array", "second"): 21,
    }


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_lines_stand_whatever_the_values_hold(values: list[str]) -> None:
    text = "".join(f"k{i} = {toml_value(value)}\n" for i, value in enumerate(values))
    assert toml_lines(text) == {(f"k{i}",): i + 1 for i in range(len(values))}


def test_leaves_are_single_values_and_empty_tables() -> None:
    values = {"a": {"b": 1, "c": {}}, "d": [{"e": 1}]}
    assert dict(leaves(values)) == {("a", "b"): 1, ("a", "c"): {}, ("d",): [{"e": 1}]}


def test_a_missing_value_comes_from_its_table_but_a_default_from_none() -> None:
    file = Origin("file", "h.toml:3")
    origins = Origins({("a", "list"): file}, {("a",): Origin("file", "h.toml:1")})
    assert origins.of(("a", "list", 0)) == file
    assert origins.of(("a", "other")).kind == "default"
    assert origins.around(("a", "other")).name == "h.toml:1"
