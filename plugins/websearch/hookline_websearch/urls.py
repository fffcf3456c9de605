"""Whether two addresses are one page."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

from courlan import normalize_url  # type: ignore[attr-defined,unused-ignore]

_AMP_HOST = re.compile(r"^amp\.")
_AMP_PATH = re.compile(r"(?:^|(?<=/))amp/?$|\.amp(?=\.html?$)")
_AMP_CACHE = re.compile(
    r"https?://(?:www\.google\.[a-z.]+/amp/(?P<google>s/)?"
    r"|[\w-]+\.cdn\.ampproject\.org/[a-z](?P<cache>/s)?/)(?P<rest>.+)",
    re.IGNORECASE,
)
_AMP_VALUES = {"amp": {"", "1", "true"}, "outputType": {"amp"}}


def is_web(url: str) -> bool:
    """Whether an address is one of the web at all: http or https, with a host, in one line."""
    try:
        parts = urlsplit(url)
        readable = parts.port is None or parts.port > 0
    except ValueError:
        return False
    named = bool((parts.hostname or "").strip(".")) and url.isprintable()
    return readable and named and parts.scheme.lower() in ("http", "https")


def site_of(url: str) -> str:
    """The site of an address: its host without ``www.``."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.rstrip(".").removeprefix("www.")


def canonical(url: str) -> str:
    """What all spellings of a page's address have in common. No address to open, a key.

    Scheme, ``www.``, default ports, fragments, the order of parameters, those that only track
    visitors, slashes at the end, and AMP editions do not count. Of an address that cannot be taken
    apart it is the address itself.
    """
    try:
        return _canonical(url) or url
    except ValueError:
        return url


def _canonical(url: str) -> str:
    plain = normalize_url(_unwrapped(url), strict=False)
    parts = urlsplit(plain)
    host = _AMP_HOST.sub("", site_of(plain))
    port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    path = _AMP_PATH.sub("", parts.path).rstrip("/")
    kept = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if value not in _AMP_VALUES.get(name, ())
    ]
    query = f"?{urlencode(sorted(kept))}" if kept else ""
    bang = f"#{parts.fragment}" if parts.fragment.startswith("!") else ""
    return f"{host}{port}{path}{query}{bang}"


def _unwrapped(url: str) -> str:
    """The page's own address where an AMP cache shows it."""
    found = _AMP_CACHE.fullmatch(url)
    if found is None:
        return url
    secure = found["google"] or found["cache"]
    return f"http{'s' if secure else ''}://{found['rest']}"
