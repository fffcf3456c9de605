"""Formats as patterns: what follows the pattern is valid, and common values follow it."""

from __future__ import annotations

import re

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline_structured.formats import PATTERNS

COMMON = {
    "date": ["2024-02-29", "1999-12-31"],
    "time": ["23:59:59Z", "08:30:06.283185+02:00"],
    "date-time": ["2024-01-01T00:00:00Z", "2024-02-29T23:59:59.123-08:00"],
    "duration": ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W"],
    "email": ["a@b.co", "john.doe+tag@mail.example.com"],
    "idn-email": ["a@b.co"],
    "hostname": ["localhost", "a-b.example.com"],
    "idn-hostname": ["example.com"],
    "ipv4": ["1.0.0.9", "192.168.1.255"],
    "ipv6": ["::", "::1", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
    "uri": ["https://example.com/a/b?c=d#e", "urn:isbn:0451450523", "mailto:a@b.c"],
    "iri": ["https://example.com/"],
    "uri-reference": ["/a/b", "a", "?q", "#f", "https://example.com/a", ""],
    "iri-reference": ["/a/b"],
    "json-pointer": ["", "/a/b~1c", "/"],
    "relative-json-pointer": ["0", "1/a", "2#"],
}


def test_every_format_has_common_values() -> None:
    assert COMMON.keys() == PATTERNS.keys()


@pytest.mark.parametrize("name", PATTERNS)
def test_common_values_follow_the_pattern(name: str) -> None:
    assert [value for value in COMMON[name] if not re.search(PATTERNS[name], value)] == []


@pytest.mark.parametrize("name", PATTERNS)
def test_what_follows_the_pattern_is_valid(name: str) -> None:
    judge = jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)

    @given(st.from_regex(PATTERNS[name][:-1] + r"\Z", alphabet=st.characters(codec="ascii")))
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    def check(text: str) -> None:
        assert judge.is_valid(text), text

    check()
