"""What is shown of settings, and how variables are read."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, SecretStr

from hookline.config.fields import MASK, decode, masked


@pytest.mark.parametrize(
    "name", ["api_key", "apikey", "key", "secret", "hf_token", "password", "Authorization", "keys"]
)
def test_secrets_are_known_by_name(name: str) -> None:
    assert masked(name, "hunter2") == MASK


@pytest.mark.parametrize("name", ["monkey", "tokens_max", "keyboard", "depth"])
def test_other_names_are_no_secrets(name: str) -> None:
    assert masked(name, "plain") == "plain"


def test_switches_with_such_names_are_shown() -> None:
    assert masked("require_api_key", True) is True
    assert masked("api_key", "") == ""
    assert masked("api_key", None) is None


def test_secrets_are_covered_by_type_inside_tables_lists_and_urls() -> None:
    assert masked("x", SecretStr("hunter2")) == MASK
    assert masked("x", "hunter2", SecretStr | None) == MASK
    assert masked("headers", {"X-Token": "hunter2", "a": [{"password": "p"}]}) == {
        "X-Token": MASK,
        "a": [{"password": MASK}],
    }
    assert masked("api_keys", ["a", "b"]) == [MASK, MASK]
    assert masked("url", "http://me:hunter2@host/a") == f"http://me:{MASK}@host/a"


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "[1]", "[1]"),
        (str | None, "5", "5"),
        (int, "5", 5),
        (bool, "true", True),
        (bool, "yes", "yes"),
        (list[str], "a, b,", ["a", "b"]),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "1,2", ["1", "2"]),
        (list[str] | str, "a,b", "a,b"),
        (list[str] | str, '["a"]', ["a"]),
        (Annotated[list[str], Field(min_length=1)], "a", ["a"]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, int], "{", "{"),
        (list[str], "[", "["),
    ],
)
def test_a_variables_text_becomes_what_its_field_holds(
    annotation: Any, text: str, value: Any
) -> None:
    assert decode(annotation, text) == value
