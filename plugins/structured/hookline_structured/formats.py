"""The values of ``format`` that are enforced, each as a pattern.

The patterns follow the RFCs that JSON Schema names and stay on the strict side: what matches is
valid for every validator, while rare spellings (quoted local parts, leap seconds in other zones,
letters beyond ASCII in domain names) are left out. Any other value of ``format`` is an annotation,
as JSON Schema has it by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_YEAR = "(?:[0-9]{4})"
_LEAP = "(?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00))"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP}-02-29)"
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:Z|[+-]{_CLOCK})"
_DURATION = (
    r"P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?"
    r"|[0-9]{1,9}D)(?:T(?:_T_))?|T(?:_T_))"
).replace(
    "_T_",
    "[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S",
)
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9]|-[A-Za-z0-9]){0,30}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_IPV6 = "|".join(
    [
        f"(?:{_H16}:){{7}}{_H16}",
        *(
            f"(?:{_H16}(?::{_H16}){{0,{left - 1}}})?::" + right
            if left
            else f"::(?:{_H16}(?::{_H16}){{0,6}})?"
            for left in range(7)
            for right in ([f"(?:{_H16}(?::{_H16}){{0,{5 - left}}})?"] if left < 6 else [_H16, ""])
        ),
    ]
)
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_QUERY = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*"
_AUTHORITY = (
    rf"(?:(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{{2}})*@)?(?:{_HOST}|{_IPV4})(?::[0-9]{{1,4}})?"
)
_TAIL = rf"(?:\?{_QUERY})?(?:#{_QUERY})?"
_ABSOLUTE = rf"//{_AUTHORITY}(?:/{_PCHAR}*)*"
_MORE = rf"(?:/{_PCHAR}*)*"
_ROOTED = rf"/(?:{_PCHAR}+{_MORE})?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]{{0,19}}:(?:{_ABSOLUTE}|{_ROOTED}|{_PCHAR}+{_MORE}){_TAIL}"
_SEGMENT = _PCHAR.replace(";=:@", ";=@")
_REFERENCE = rf"(?:{_URI}|(?:{_ABSOLUTE}|{_ROOTED}|{_SEGMENT}+{_MORE})?{_TAIL})"
_EMAIL = rf"[A-Za-z0-9_+-]{{1,30}}(?:\.[A-Za-z0-9_+-]{{1,30}})?@{_HOST}"
_POINTER = "(?:/(?:[^/~\\x00-\\x1F]|~[01])*)*"

PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        name: f"^(?:{pattern})$"
        for name, pattern in {
            "date": _DATE,
            "time": _TIME,
            "date-time": f"{_DATE}T{_TIME}",
            "duration": _DURATION,
            "email": _EMAIL,
            "idn-email": _EMAIL,
            "hostname": _HOST,
            "idn-hostname": _HOST,
            "ipv4": _IPV4,
            "ipv6": _IPV6,
            "uuid": "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
            "uri": _URI,
            "iri": _URI,
            "uri-reference": _REFERENCE,
            "iri-reference": _REFERENCE,
            "json-pointer": _POINTER,
            "relative-json-pointer": f"(?:0|[1-9][0-9]{{0,5}})(?:#|{_POINTER})",
        }.items()
    }
)
"""ECMA-262 patterns, anchored, by the name of the format."""
