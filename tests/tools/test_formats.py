"""Every format: what the constraint lets a model write is what the stage reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Delta, StartError, Token, Vocabulary
from hookline.engines.detokenizer import Detokenizer
from hookline_structured.grammar import LLGrammar
from hookline_structured.tagged import read_tagged
from hookline_structured.tokens import Tokens
from hookline_tools.format import ToolFormat
from hookline_tools.formats import FORMATS, choose
from hookline_tools.reading import Misspelled
from hookline_tools.stage import CallStage

CONTROL = (
    *("[TOOL_CALLS]", "[ARGS]", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
    *("<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"),
)
END = 256
VOCABULARY = Vocabulary(
    (*(bytes([byte]) for byte in range(256)), b"</s>", *(text.encode() for text in CONTROL)),
    frozenset(range(END, END + 1 + len(CONTROL))),
    frozenset({END}),
)

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "get": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "get_all": {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "bc"]},
            "deep": {
                "type": "object",
                "properties": {"x": {"type": "array", "items": {"type": "string"}}},
                "required": ["x"],
                "additionalProperties": False,
            },
        },
        "required": ["kind", "deep"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}


def ids(text: str) -> list[int]:
    """A text as the model says it: control tokens where there are some, bytes otherwise."""
    found = [(text.find(mark), mark) for mark in CONTROL if mark in text]
    if not found:
        return list(text.encode())
    at, mark = min(found)
    control = END + 1 + CONTROL.index(mark)
    return [*text[:at].encode(), control, *ids(text[at + len(mark) :])]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def written(form: ToolFormat, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Calls as a model writes them."""
    if form.name != "qwen-coder":
        return form.write([(name, compact(arguments)) for name, arguments in calls])
    return form.write([(name, _parameters(arguments)) for name, arguments in calls])


def _parameters(arguments: Mapping[str, Any]) -> str:
    return "".join(
        f"<parameter={name}>\n{value if isinstance(value, str) else compact(value)}\n</parameter>\n"
        for name, value in arguments.items()
    )


@pytest.fixture(scope="session")
def tokens() -> Tokens:
    return Tokens(VOCABULARY, lambda text: list(text.encode()))


@pytest.fixture(scope="session")
def grammar_of(tokens: Tokens) -> Callable[[Any], LLGrammar]:
    """Compiles a tagged constraint for the vocabulary of bytes and control tokens."""

    def compile_tagged(value: Any) -> LLGrammar:
        tagged = read_tagged(value)
        schemas = dict(tagged.schemas())
        return LLGrammar(tagged.source(schemas, tokens.special, compact=True), tokens)

    return compile_tagged


every_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
Call = tuple[str, dict[str, Any]]

# What the stage reads


def stage(form: ToolFormat, *, parallel: bool = True) -> CallStage:
    numbers = count(1)
    return CallStage(form, SCHEMAS, lambda: f"id-{next(numbers)}", parallel=parallel)


def run(form: ToolFormat, pieces: Iterable[str], *, parallel: bool = True) -> list[Any]:
    """What comes of an answer: neighbours of a kind as one, the end as the last."""
    reader = stage(form, parallel=parallel)
    deltas: list[Delta] = []
    for piece in pieces:
        deltas += reader.feed(Delta(piece, tokens=(Token(1, piece),)))
        if deltas and deltas[-1].finish:
            break
    else:
        deltas += reader.feed(Delta("", tokens=(Token(END, "", b"</s>", special=True),)))
        deltas += reader.finish()
    return joined(deltas)


def joined(deltas: Iterable[Delta]) -> list[Any]:
    result: list[Any] = []
    for delta in deltas:
        if delta.tool_call is not None and delta.tool_call.name is not None:
            call = delta.tool_call
            result.append([call.index, call.id, call.name, call.arguments])
        elif delta.tool_call is not None:
            assert result[-1][0] == delta.tool_call.index
            assert delta.tool_call.id is None
            result[-1][3] += delta.tool_call.arguments
        elif delta.text and result and isinstance(result[-1], str):
            result[-1] += delta.text
        elif delta.text:
            result.append(delta.text)
        if delta.finish:
            result.append({"finish": delta.finish})
    return result


def read(result: Sequence[Any]) -> tuple[str, list[Call], str | None]:
    """Content, calls and end of an answer; indices and ids are as they must be."""
    content = "".join(part for part in result if isinstance(part, str))
    calls = [part for part in result if isinstance(part, list)]
    assert [(call[0], call[1]) for call in calls] == [(i, f"id-{i + 1}") for i in range(len(calls))]
    finishes = [part["finish"] for part in result if isinstance(part, dict)]
    return content, [(c[2], json.loads(c[3])) for c in calls], finishes[0] if finishes else None


words = st.text(st.sampled_from('aé "\\{}[]<>/\n字'), max_size=6)
arguments = {
    "get": st.fixed_dictionaries({"city": words}, optional={"days": st.integers()}),
    "get_all": st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["a", "bc"]),
            "deep": st.fixed_dictionaries({"x": st.lists(words, max_size=2)}),
        }
    ),
    "now": st.just({}),
}
calls = st.one_of(*(st.tuples(st.just(name), value) for name, value in arguments.items()))
before = st.sampled_from(["", "I look.", "Let me < see\n\n", " \n", "a [TOOL {"])


@given(st.sampled_from(FORMATS), before, st.lists(calls, min_size=1, max_size=3), st.data())
def test_calls_are_read_however_they_are_cut(
    form: ToolFormat, said: str, wanted: list[Call], data: st.DataObject
) -> None:
    said = said if form.anywhere else ""
    wanted = wanted if form.parallel else wanted[:1]
    text = said + written(form, wanted)
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    expected = run(form, [text])
    assert run(form, text) == expected
    detokenizer = Detokenizer()
    assert run(form, (detokenizer.feed(bytes([byte])) for byte in text.encode())) == expected
    assert run(form, [text[a:b] for a, b in pairwise(sorted({0, len(text), *places}))]) == expected
    assert read(expected) == (said.rstrip(), wanted, "tool_calls")


@given(st.sampled_from(FORMATS), words, st.lists(st.integers(0, 20), max_size=4))
def test_text_without_a_call_is_left_alone(form: ToolFormat, text: str, places: list[int]) -> None:
    if not form.anywhere:
        text = "x" + text
    edges = sorted({0, len(text), *(min(place, len(text)) for place in places)})
    for pieces in ([text], list(text), [text[a:b] for a, b in pairwise(edges)]):
        assert read(run(form, pieces)) == (text, [], None)


TWO: list[Call] = [("get", {"city": "Rome"}), ("now", {})]


@every_format
def test_a_call_that_was_cut_is_no_complete_one(form: ToolFormat) -> None:
    text = written(form, TWO if form.parallel else TWO[:1])
    complete = 0
    for length in range(len(text)):
        reader = stage(form)
        deltas = [delta for letter in text[:length] for delta in reader.feed(Delta(letter))]
        deltas += reader.finish()
        assert not [delta for delta in deltas if delta.finish]
        complete += len([part for part in joined(deltas) if isinstance(part, list)])
    assert complete


@every_format
def test_one_call_is_enough_where_several_are_not_wanted(form: ToolFormat) -> None:
    text = written(form, TWO[:1])
    assert read(run(form, text, parallel=False)) == ("", TWO[:1], "tool_calls")


@every_format
def test_the_name_comes_once_and_arguments_as_they_are_written(form: ToolFormat) -> None:
    reader = stage(form)
    deltas = [
        d.tool_call for c in written(form, TWO[:1]) for d in reader.feed(Delta(c)) if d.tool_call
    ]
    assert [(d.name, d.id) for d in deltas if d.name or d.id] == [("get", "id-1")]
    assert len(deltas) > len("Rome")
    assert json.loads("".join(delta.arguments for delta in deltas)) == {"city": "Rome"}


def test_what_no_constraint_allows_is_an_error() -> None:
    with pytest.raises(Misspelled):
        run(choose("hermes", "", ()), ["<tool_call>nonsense"])


def test_an_early_end_and_other_channels_pass() -> None:
    reader = stage(choose("hermes", "", ()))
    thought = Delta("<tool_call>", "reasoning")
    assert list(reader.feed(thought)) == [thought]
    assert joined(reader.feed(Delta("Hm <tool", finish="stop"))) == ["Hm <tool", {"finish": "stop"}]


# What the constraint allows


def accepts(grammar: LLGrammar, text: str) -> bool:
    return grammar.completes(ids(text))


@every_format
def test_the_constraint_allows_calls_that_match(form: ToolFormat, grammar_of: Any) -> None:
    grammar = grammar_of(form.constraint(SCHEMAS, required=True, parallel=True))
    free = grammar_of(form.constraint(SCHEMAS, required=False, parallel=True))
    deep = ("get_all", {"kind": "bc", "deep": {"x": ["a", "é"]}})
    for wanted in ([TWO[0]], [TWO[1]], [deep], [("get", {"city": "Rome", "days": 2})]):
        assert accepts(grammar, written(form, wanted)), wanted
        assert accepts(free, written(form, wanted)), wanted
        assert accepts(free, "I look.\n" + written(form, wanted))
    assert accepts(grammar, written(form, TWO)) is form.parallel


@every_format
def test_the_constraint_allows_nothing_else(form: ToolFormat, grammar_of: Any) -> None:
    grammar = grammar_of(form.constraint(SCHEMAS, required=True, parallel=True))
    free = grammar_of(form.constraint(SCHEMAS, required=False, parallel=True))
    wrong: list[list[Call]] = [
        [("get", {})],
        [("get", {"city": "Rome", "days": "two"})],
        [("get", {"city": "Rome", "country": "Italy"})],
        [("get_all", {"kind": "b", "deep": {"x": []}})],
        [("other", {})],
    ]
    for calls in wrong:
        assert not accepts(grammar, written(form, calls)), calls
        assert not accepts(free, written(form, calls)), calls
    assert not accepts(grammar, "")
    assert not accepts(grammar, "Hello")
    assert accepts(free, "")
    assert accepts(free, "Hello < there")
    assert not accepts(free, written(form, TWO[:1]) + " bye")


@every_format
def test_one_call_at_most(form: ToolFormat, grammar_of: Any) -> None:
    for required in (True, False):
        grammar = grammar_of(form.constraint(SCHEMAS, required=required, parallel=False))
        assert accepts(grammar, written(form, TWO[:1]))
        assert not accepts(grammar, written(form, TWO))


def test_a_bare_object_counts_only_at_the_beginning(grammar_of: Any) -> None:
    llama = choose("llama", "", ())
    free = grammar_of(llama.constraint(SCHEMAS, required=False, parallel=True))
    call = written(llama, TWO[:1])
    assert accepts(free, "\n" + call)
    assert read(run(llama, "\n" + call)) == ("", TWO[:1], "tool_calls")
    for text in ('Use {"a": 1}', f"See: {call}"):
        assert accepts(free, text)
        assert read(run(llama, text)) == (text, [], None)
    assert not accepts(free, ' {"a": 1}')


# Which format a model has


TEMPLATES = {
    "hermes": "{% if tools %}<tool_call>{% endif %}",
    "llama": """{{ tools }} '{"name": "' + name + '", ' '"parameters": '""",
    "mistral": "{{ tools }}[TOOL_CALLS][{{ calls }}]",
    "mistral-args": "{{ tools }}[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜> ```json",
    "deepseek-bare": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
    "qwen-coder": "{{ tools }}<tool_call><function=x><parameter=y>",
    "generic": "{{ messages }}",
}


@every_format
def test_the_chat_template_tells_the_format(form: ToolFormat) -> None:
    assert choose("auto", TEMPLATES[form.name], ()) is form
    assert choose(form.name, "", ()) is form


def test_added_formats_come_first() -> None:
    mine = ToolFormat("mine", ("<tool_call>",), "!", "!", "(", ")")
    assert choose("auto", TEMPLATES["hermes"], [mine]) is mine
    assert choose("mine", "", [mine]) is mine


def test_a_format_that_nobody_has() -> None:
    with pytest.raises(StartError, match=r"no 'hermez'.*hermes"):
        choose("hermez", "", ())


def test_a_format_begins_with_its_trigger() -> None:
    with pytest.raises(ValueError, match="trigger"):
        ToolFormat("wrong", (), "<a>", "<b>", "", "")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "anyOf": [{}]}, "'anyOf'"),
        ({"type": "object", "required": ["x"]}, "'x'"),
        ({"type": "object", "properties": {"a>b": {}}}, "a>b"),
        ({"type": "object", "properties": ["a"]}, "'properties'"),
        ({"type": "object", "properties": {"a": {}}, "required": [["a"]]}, "is required"),
    ],
)
def test_parameters_as_tags_need_plain_properties(schema: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        choose("qwen-coder", "", ()).constraint({"f": schema}, required=True, parallel=True)


def test_parameters_as_tags_of_every_kind(grammar_of: Any) -> None:
    schema = {
        "type": "object",
        "properties": {
            "date": {"type": "string", "pattern": "^[0-9]{4}$"},
            "node": {"$ref": "#/$defs/node"},
            "maybe": {"type": ["string", "null"]},
            "fixed": {"const": "yes"},
        },
        "required": ["date"],
        "$defs": {"node": {"type": "integer"}},
    }
    form = choose("qwen-coder", "", ())
    grammar = grammar_of(form.constraint({"get": schema}, required=True, parallel=True))
    text = '<tool_call>\n<function=get>\n<parameter=date>\n"2024"\n</parameter>\n'
    text += "<parameter=node>\n5\n</parameter>\n<parameter=maybe>\nnull\n</parameter>\n"
    text += "<parameter=fixed>\nyes\n</parameter>\n</function>\n</tool_call>"
    assert accepts(grammar, text)
    assert not accepts(grammar, text.replace("2024", "20"))
    reader = CallStage(form, {"get": schema}, lambda: "id-1", parallel=True)
    _, ((_, said),), _ = read(joined(reader.feed(Delta(text))))
    assert said == {"date": "2024", "node": 5, "maybe": None, "fixed": "yes"}
