"""Names of collections and documents: what they may be, and how they are kept."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

from hookline import InvalidRequest

LONGEST_COLLECTION = 256
LONGEST_DOCUMENT = 255

_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, what turns the direction of a text around, and half characters."""
_ROUTE = re.compile(r"/(search|files|file_batches)(/|$)")
"""What follows a collection in paths, and so cannot be a part of its name there."""


def collection_name(sent: str, param: str = "name") -> str:
    """A collection's name as it is kept: composed (NFC), without white space around it.

    It may be empty, and hold slashes like ``legal/2024``. Raises InvalidRequest for a name by which
    nobody could ask for the collection later, in a path or in the field ``knowledge``.
    """
    name = plain(sent)
    if problem := _problem(name):
        raise InvalidRequest(f"'{param}': the name of a collection {problem}.", param=param)
    return name


def _problem(name: str) -> str | None:
    if len(name) > LONGEST_COLLECTION:
        return f"has at most {LONGEST_COLLECTION} characters, and this one has {len(name)}"
    if found := _UNSEEN.search(name):
        return f"cannot hold characters that nobody sees, such as U+{ord(found[0]):04X} here"
    if name == "all" or is_id(name):
        return f"cannot be '{name}', which means all of them or is an id"
    if name and {"", ".", ".."} & set(name.split("/")):
        return f"cannot be '{name}': between slashes must be something, but not '.' or '..'"
    if found := _ROUTE.search(name):
        return f"cannot hold '{found[0]}', which means something else in paths"
    return None


def plain(name: str) -> str:
    """The one way to write a name that looks like this."""
    return unicodedata.normalize("NFC", name).strip()


def is_id(name: str) -> bool:
    """Whether a text has the form of a collection's id."""
    return name.startswith(("c:", "vs_"))


def document_name(sent: str) -> str:
    """A name that is only a name: no folders, nothing that is not seen, not too long."""
    name = PurePosixPath(plain(sent).replace("\\", "/")).name
    name = _UNSEEN.sub("", name)
    stem, dot, suffix = name.strip().rpartition(".")
    if len(name) > LONGEST_DOCUMENT and dot:
        name = f"{stem[: LONGEST_DOCUMENT - len(suffix) - 1]}.{suffix}"
    name = name[:LONGEST_DOCUMENT].strip()
    return name if name.strip(".") else "file"
