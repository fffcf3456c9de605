"""Mails: the letter, its other forms, and the files that come with it."""

from __future__ import annotations

from email.message import EmailMessage
from typing import Any

import pytest

from hookline_knowledge.parsing.unreadable import Unreadable


def test_a_mail_begins_with_who_wrote_to_whom(read: Any, files: Any) -> None:
    (letter,) = read(files.eml("The rent is 900 €.").as_bytes(), "rent.eml")
    assert letter.text == (
        "Subject: Rent\nFrom: Ann <ann@example.com>\nTo: bob@example.com\n"
        "Date: Mon, 02 Nov 2026 09:00:00 +0000\n\nThe rent is 900 €.\n".strip()
    )
    assert letter.location == ""
    assert read.reading.title == "Rent"


def test_the_page_that_says_the_same_is_not_read_twice(read: Any, files: Any) -> None:
    mail = files.eml("Good morning.")
    mail.add_alternative("<p>Good <b>morning</b>.</p>", subtype="html")
    (letter,) = read(mail.as_bytes(), "a.eml")
    assert letter.text.endswith("Good morning.")


def test_a_mail_that_is_only_a_page(read: Any) -> None:
    mail = EmailMessage()
    mail["Subject"] = "News"
    mail.set_content("<h1>Hello</h1><p>you</p><script>x</script>", subtype="html")
    (letter,) = read(mail.as_bytes(), "a.eml")
    assert letter.text == "Subject: News\n\n# Hello\n\nyou"


def test_attachments_are_read_with_their_own_places(read: Any, files: Any) -> None:
    mail = files.eml()
    mail.add_attachment(
        files.pdf("First", "Second"), maintype="application", subtype="pdf", filename="Miete ä.pdf"
    )
    mail.add_attachment("one\ntwo", filename="notes.txt")
    inner = files.eml("Inside.", subject="Inner")
    inner.add_attachment("deep", filename="deep.txt")
    mail.add_attachment(inner)
    sections = read(mail.as_bytes(), "a.eml")
    assert [(s.location, s.text.splitlines()[-1]) for s in sections[1:]] == [
        ("Miete ä.pdf, page 1", "First"),
        ("Miete ä.pdf, page 2", "Second"),
        ("notes.txt, lines 1-2", "two"),
        ("part 4.eml", "Inside."),
        ("part 4.eml, deep.txt, line 1", "deep"),
    ]


def test_what_cannot_be_read_of_a_mail_is_told(read: Any, files: Any) -> None:
    mail = files.eml()
    mail.add_attachment(b"\0\1\2\3", maintype="application", subtype="x", filename="a.bin")
    (letter,) = read(mail.as_bytes(), "a.eml")
    assert "Good morning." in letter.text
    assert read.reading.notes == ["a.bin: The file is neither text nor of a kind that is read."]


def test_mails_in_mails_end_somewhere(read: Any, files: Any) -> None:
    mail = files.eml("bottom")
    for _ in range(6):
        outer = files.eml("above")
        outer.add_attachment(mail)
        mail = outer
    sections = read(mail.as_bytes(), "a.eml")
    assert len(sections) == 4
    assert "too many files inside" in read.reading.notes[0]


def test_only_so_many_attachments_are_read(read: Any, files: Any) -> None:
    read.limit(attachments=2)
    mail = files.eml()
    for number in range(5):
        mail.add_attachment("text", filename=f"{number}.txt")
    assert len(read(mail.as_bytes(), "a.eml")) == 3
    assert len(read.reading.notes) == 3


def test_a_mail_in_an_old_encoding(read: Any) -> None:
    head = b"Subject: =?iso-8859-1?q?Gr=FC=DFe?=\nFrom: a@example.com\nDate: x\n"
    body = b"Content-Type: text/plain; charset=iso-8859-1\n\nSch\xf6ne Gr\xfc\xdfe"
    (letter,) = read(head + body, "a.eml")
    assert letter.text.startswith("Subject: Grüße\n")
    assert letter.text.endswith("Schöne Grüße")


@pytest.mark.parametrize("charset", ["no-such-charset", "zlib", "idna"])
def test_a_mail_with_an_encoding_that_is_none(read: Any, charset: str) -> None:
    mail = f"Subject: x\nContent-Type: text/plain; charset={charset}\n\nGrüße"
    (letter,) = read(mail, "a.eml")
    assert letter.text.endswith("Grüße")


def test_a_mail_without_an_ending_in_its_name_is_known(read: Any, files: Any) -> None:
    read(files.eml().as_bytes(), "message")
    assert read.reading.media_type == "message/rfc822"


def test_what_has_no_headers_is_no_mail(read: Any) -> None:
    with pytest.raises(Unreadable, match="no mail"):
        read("just a text", "a.eml")
