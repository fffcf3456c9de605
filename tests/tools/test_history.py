"""Earlier calls and results, as chat templates of different minds want them."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import InvalidRequest, Message
from hookline_tools.formats import choose
from hookline_tools.history import for_template, takes_mappings

MAPPINGS = (
    "{{ tool_call.arguments | tojson }}",
    "{{ tool_call['function']['arguments']|tojson }}",
    "{% for name, value in tool_call.arguments|items %}",
    "{% for name, value in call.arguments.items() %}",
    "{{ tool_call.function|tojson }}",
    "{% if tool_call.arguments is string %}{{ tool_call.arguments }}{% endif %}",
)
TEXTS = ("'```json' + tool['function']['arguments'] + '```'", "{{ call.function.arguments }}", "")


@pytest.mark.parametrize("template", MAPPINGS)
def test_templates_that_write_json_themselves(template: str) -> None:
    assert takes_mappings(template)


@pytest.mark.parametrize("template", TEXTS)
def test_templates_that_take_json_as_text(template: str) -> None:
    assert not takes_mappings(template)


def call(arguments: Any, name: str = "get", id_: str = "call_0123456789") -> dict[str, Any]:
    return {"id": id_, "function": {"name": name, "arguments": arguments}}


def conversation(arguments: Any) -> list[Message]:
    messages = [
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call(arguments)]},
        {"role": "tool", "tool_call_id": "call_0123456789", "content": "20"},
    ]
    return [Message.model_validate(message) for message in messages]


def arguments_in(messages: list[Message]) -> Any:
    (made,) = list(messages[1].tool_calls or [])
    return made.function.arguments


@pytest.mark.parametrize("given", ['{"city": "Rom\\u0065"}', {"city": "Rome"}])
def test_arguments_reach_the_template_its_own_way(given: Any) -> None:
    hermes = choose("hermes", "", ())
    before = conversation(given)
    assert arguments_in(for_template(before, hermes, MAPPINGS[0])) == {"city": "Rome"}
    text = arguments_in(for_template(before, hermes, TEXTS[0]))
    assert text == (given if isinstance(given, str) else '{"city": "Rome"}')
    assert arguments_in(before) == given


@pytest.mark.parametrize("given", ["", "{}", {}])
def test_no_arguments(given: Any) -> None:
    assert (
        arguments_in(for_template(conversation(given), choose("hermes", "", ()), MAPPINGS[0])) == {}
    )


@pytest.mark.parametrize("given", ['{"city', "[1]", "5"])
def test_text_that_is_no_object_is_refused_only_where_it_must_be_one(given: str) -> None:
    hermes = choose("hermes", "", ())
    with pytest.raises(InvalidRequest) as refused:
        for_template(conversation(given), hermes, MAPPINGS[0])
    assert refused.value.param == "messages[1].tool_calls[0].function.arguments"
    assert arguments_in(for_template(conversation(given), hermes, TEXTS[0])) == given


def test_results_are_told_whose_they_are() -> None:
    result = for_template(conversation("{}"), choose("hermes", "", ()), "")[2]
    assert (result.name, result.tool_call_id) == ("get", "call_0123456789")


def test_ids_that_a_template_insists_on() -> None:
    _, called, result = for_template(conversation("{}"), choose("mistral", "", ()), "")
    (made,) = list(called.tool_calls or [])
    assert made.id == result.tool_call_id
    assert len(made.id) == 9 and made.id.isalnum()
    again = for_template([called, result], choose("mistral", "", ()), "")
    assert [m.tool_call_id for m in again] == [None, made.id]


def test_for_a_template_without_tools_they_are_text() -> None:
    generic = choose("generic", "", ())
    two = [*conversation({"city": "Rome"}), Message(role="tool", content="and 5")]
    user, called, results = for_template(two, generic, "")
    assert user.text == "Rome?"
    assert (called.role, called.tool_calls) == ("assistant", None)
    assert called.text == "I look.\n" + generic.write([("get", '{"city": "Rome"}')])
    assert results.role == "user"
    assert [part.strip() for part in results.text.split("\n")[1::3]] == ["20", "and 5"]


def test_other_conversations_stay_as_they_are() -> None:
    messages = conversation("{}")[:1]
    assert for_template(messages, choose("generic", "", ()), "") == messages
