"""Random schemas: each is refused, or every walk through its masks ends in a valid document."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline_structured.analysis import analyse
from hookline_structured.grammar import LLGrammar
from hookline_structured.options import json_source
from hookline_structured.refusal import Refused

NAMES = st.sampled_from(["a", "b", "ab", "x y"])
VALUES = st.sampled_from([0, 1, 2, -1, 1.5, "a", "ab", "", True, None, [1], {"a": 1}])
SMALL = st.integers(0, 3)
PATTERNS = st.sampled_from(["^a", "b$", "^[a-c]{1,3}$", "x|y", r"^\d+$", r"\S", "^a|b$"])
FORMATS = st.sampled_from(["date", "time", "email", "ipv4", "uuid", "duration", "int64"])
NUMBERS = st.sampled_from([-5, 0, 1, 1.5, 7, 12.25])


def maybe(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Each keyword in a third of the schemas."""
    third = {k: st.one_of(st.none(), st.none(), v) for k, v in keywords.items()}
    return st.fixed_dictionaries(third).map(
        lambda made: {k: v for k, v in made.items() if v is not None}
    )


def typed(kind: Any, rest: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return rest.map(lambda keywords: {"type": kind, **keywords})


LEAVES = st.one_of(
    st.booleans(),
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {}]),
    typed("string", maybe(minLength=SMALL, maxLength=SMALL, pattern=PATTERNS, format=FORMATS)),
    typed("integer", maybe(minimum=NUMBERS, maximum=NUMBERS, multipleOf=st.sampled_from([2, 3]))),
    typed(
        "number",
        maybe(exclusiveMinimum=NUMBERS, maximum=NUMBERS, multipleOf=st.sampled_from([0.1, 0.5, 3])),
    ),
    st.lists(VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values}),
)


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(NAMES, inner, max_size=3)
    some = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        typed(
            "object",
            maybe(
                properties=named,
                required=st.lists(NAMES, max_size=2, unique=True),
                additionalProperties=inner,
                patternProperties=st.dictionaries(st.sampled_from(["^a", "[0-9]"]), inner),
                minProperties=SMALL,
                maxProperties=SMALL,
                propertyNames=st.sampled_from([{"pattern": "^[ab]"}, {"maxLength": 2}]),
                dependentRequired=st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
            ),
        ),
        typed(
            ["array", "null"],
            maybe(
                items=inner,
                prefixItems=some,
                minItems=SMALL,
                maxItems=SMALL,
                uniqueItems=st.just(True),
            ),
        ),
        maybe(anyOf=some, allOf=some, oneOf=some, properties=named),
    )


@given(st.recursive(LEAVES, deeper, max_leaves=6), st.integers(0, 2**32))
@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_walks_end_in_valid_documents(
    tokens: Any, walk: Any, chance: Any, schema: Any, seed: int
) -> None:
    try:
        grammar = LLGrammar(
            json_source(analyse(schema).grammar, compact=True), tokens, is_json=True
        )
    except Refused:
        return
    judge = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for step in range(3):
        document = walk(grammar, chance(seed + step))
        assert document is ... or judge.is_valid(document), json.dumps([schema, document])
