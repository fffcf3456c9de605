"""Documents as text: what a parser makes of a file's bytes, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document that has one place in it.

    ``text`` is plain text or Markdown. ``location`` says where it stands, for people: ``page 3``,
    ``slide 2``, ``Prices, rows 2-40``, ``Terms > Payment``; empty where there is nothing to say.
    """

    text: str
    location: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: its sections in order, and the media type that it really has.

    ``notes`` say, in sentences for people, what is in the file and not in the sections.
    """

    title: str
    sections: tuple[Section, ...]
    media_type: str
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it, sections apart by an empty line."""
        return "\n\n".join(section.text for section in self.sections)
