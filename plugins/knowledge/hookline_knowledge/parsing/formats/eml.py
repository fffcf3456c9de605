"""Mails: headers, the text, and the files that come with it."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart

from hookline import Section
from hookline_knowledge.parsing.charset import clean, decode, extends_ascii
from hookline_knowledge.parsing.formats import html
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import Unreadable

HEADERS = ("Subject", "From", "To", "Cc", "Date")
MAIL = "message/rfc822"


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The mail itself, then what is attached."""
    mail = email.message_from_bytes(data, policy=email.policy.default)
    if not mail.keys():
        raise Unreadable("The file is no mail: it has no headers.")
    headers = {name: _header(mail, name, reading) for name in HEADERS}
    reading.title = headers["Subject"]
    body = mail.get_body(("plain", "html"))
    about = "\n".join(f"{name}: {value}" for name, value in headers.items() if value)
    yield Section(f"{about}\n\n{_body(body, reading)}".strip())
    for number, part in enumerate(_leaves(mail), 1):
        if part is not body and not _is_same_text(part):
            yield from _attached(part, part.get_filename() or f"part {number}", reading)


def _header(mail: EmailMessage, name: str, reading: Reading) -> str:
    try:
        return " ".join(str(mail.get(name, "")).split())
    except Exception:  # the standard library trips over some malformed headers
        reading.notes.append(f"The header {name} is damaged.")
        return ""


def _body(part: MIMEPart | None, reading: Reading) -> str:
    if part is None:
        return ""
    text = _text(part)
    return html.as_markdown(text, reading) if part.get_content_subtype() == "html" else text


def _text(part: MIMEPart) -> str:
    data = part.get_payload(decode=True) or b""
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset() or ""
    known = charset and extends_ascii(charset)
    return clean(data.decode(charset, errors="replace") if known else decode(data))


def _leaves(part: EmailMessage) -> Iterator[EmailMessage]:
    """The parts that hold something; a mail in a mail is one."""
    if part.is_multipart() and part.get_content_type() != MAIL:
        for inner in part.iter_parts():
            if isinstance(inner, EmailMessage):
                yield from _leaves(inner)
    else:
        yield part


def _is_same_text(part: EmailMessage) -> bool:
    """Whether a part is the text once more, as a page."""
    return part.get_content_type() == "text/html" and not part.get_filename()


def _attached(part: EmailMessage, name: str, reading: Reading) -> Iterator[Section]:
    if part.get_content_type() == MAIL:
        inner = part.get_payload(0)
        data = inner.as_bytes() if isinstance(inner, EmailMessage) else b""
        name = name if name.endswith(".eml") else f"{name}.eml"
    else:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
    yield from reading.attached(data, clean(name), part.get_content_type())
