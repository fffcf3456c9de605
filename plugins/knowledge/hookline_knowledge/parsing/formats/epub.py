"""EPUB books, chapter by chapter in the order of reading."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from zipfile import ZipFile

from hookline import Section
from hookline_knowledge.parsing.archive import open_archive, read_part
from hookline_knowledge.parsing.charset import decode
from hookline_knowledge.parsing.formats import html
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import Unreadable

if TYPE_CHECKING:
    from lxml.etree import _Element

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
PAGES = ("application/xhtml+xml", "text/html")


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The sections of all chapters of the spine."""
    with open_archive(data, reading.limits) as archive:
        package_path = _package_path(archive)
        package = _xml(archive, package_path)
        chapters = _spine(package, posixpath.dirname(package_path))
        locked = _encrypted(archive)
        if locked & set(chapters):
            raise Unreadable("The book is encrypted (DRM). Get it without protection.")
        reading.title = _first(package, "//*[local-name()='title']/text()")
        titles = _contents(archive, package, posixpath.dirname(package_path))
        for number, chapter in enumerate(chapters, 1):
            page = read_part(archive, chapter)
            if page is None:
                reading.notes.append(f"The chapter {number} ({chapter}) is missing.")
            elif page.strip():
                yield from html.sections(decode(page), reading, titles.get(chapter, ""))


def _xml(archive: ZipFile, path: str) -> _Element:
    from lxml import etree

    data = read_part(archive, path)
    if data is None:
        raise Unreadable(f"The book is damaged: its '{path}' is missing.")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, recover=True)
    root = etree.fromstring(data, parser)
    if root is None:
        raise Unreadable(f"The book is damaged: its '{path}' is no XML.")
    return root


def _all(root: _Element, path: str) -> list[Any]:
    found: Any = root.xpath(path)
    return list(found)


def _first(root: _Element, path: str) -> str:
    return " ".join(str(next(iter(_all(root, path)), "")).split())


def _package_path(archive: ZipFile) -> str:
    path = _first(_xml(archive, CONTAINER), "//*[local-name()='rootfile']/@full-path")
    if not path:
        raise Unreadable("The book is damaged: it does not say where its contents are.")
    return path


def _spine(package: _Element, folder: str) -> list[str]:
    """The paths of the chapters, in order."""
    paths = {
        item.get("id"): _path(folder, item.get("href", ""))
        for item in _all(package, "//*[local-name()='manifest']/*[local-name()='item']")
        if item.get("media-type") in PAGES
    }
    order = _all(package, "//*[local-name()='spine']/*[local-name()='itemref']/@idref")
    chapters = [paths[key] for key in order if key in paths]
    if not chapters:
        raise Unreadable("The book is damaged: it lists no chapters.")
    return list(dict.fromkeys(chapters))


def _contents(archive: ZipFile, package: _Element, folder: str) -> dict[str, str]:
    """Titles of chapters by their path, from the table of contents of either version of EPUB."""
    titles: dict[str, str] = {}
    for item in _all(package, "//*[local-name()='item']"):
        is_new = "nav" in (item.get("properties") or "").split()
        if not is_new and item.get("media-type") != "application/x-dtbncx+xml":
            continue
        path = _path(folder, item.get("href", ""))
        if path in archive.NameToInfo:
            for target, title in _entries(_xml(archive, path), is_new):
                titles.setdefault(_path(posixpath.dirname(path), target), title)
    return titles


def _entries(contents: _Element, is_new: bool) -> Iterator[tuple[str, str]]:
    if is_new:
        for link in _all(contents, "//*[local-name()='nav']//*[local-name()='a'][@href]"):
            yield link.get("href"), " ".join("".join(link.itertext()).split())
    else:
        for point in _all(contents, "//*[local-name()='navPoint']"):
            title = _first(point, "./*[local-name()='navLabel']//text()[normalize-space()]")
            yield _first(point, "./*[local-name()='content']/@src"), title


def _encrypted(archive: ZipFile) -> set[str]:
    """The parts that only a key opens; fonts may be, and harm nothing."""
    if ENCRYPTION not in archive.NameToInfo:
        return set()
    references = _all(_xml(archive, ENCRYPTION), "//*[local-name()='CipherReference']/@URI")
    return {_path("", str(uri)) for uri in references}


def _path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(target.partition("#")[0])))
