"""The process that reads files, and may break, hang or run out of memory over them.

Run as ``python -m hookline_knowledge.parsing.worker``, with the limits as JSON for its argument.
For each file it is sent a message (``name``, ``media_type``, ``path`` or None, ``size``) and then
``size`` bytes, the file where there is no path. It answers with messages: ``text`` (the next part
of a section's text), ``place`` (the section ends, and that is where it stands), ``picture`` (OCR of
a picture begins), and one last: ``read`` or ``unreadable``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from hookline_knowledge.parsing.charset import clean
from hookline_knowledge.parsing.frames import pack, read_message
from hookline_knowledge.parsing.ocr import Ocr
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.settings import MIB, ParsingSettings
from hookline_knowledge.parsing.unreadable import Unreadable, out_of_memory, too_large, too_much
from hookline_knowledge.wording import counted

TEXT_PART = 100_000
"""Characters of a section that go into one message, so that none holds up the server's loop."""

NOTES_MAX = 100

NESTING = 5000
"""Calls within calls: pages and mails are nested deeper than Python's 1000 allow."""

NICENESS = 5
"""Reading files yields to answering."""

Say = Callable[[dict[str, Any]], None]


def limit_memory(limits: ParsingSettings) -> None:
    """Lets the system refuse memory beyond the limit.

    Data is what counts: libraries reserve far more addresses than they use.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        size = limits.memory_mb * MIB
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor(limits: ParsingSettings) -> None:
    """Lets the system end the process should it hang once nobody waits for it any more."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        allowed = limits.seconds + limits.ocr_pages * limits.ocr_seconds
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + allowed) + 1, most))


def has_grown(limits: ParsingSettings) -> bool:
    """Whether files left so much memory behind that a new process does better."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") > limits.memory_mb * MIB // 2
    return False


class Worker:
    """Reads one file after the other."""

    def __init__(self, limits: ParsingSettings, requests: BinaryIO, say: Say) -> None:
        self._limits = limits
        self._requests = requests
        self._say = say
        self._ocr = Ocr(lambda: say({"picture": True}))

    def run(self) -> None:
        """Answers until there are no more requests."""
        while (request := read_message(self._requests)) is not None:
            data = self._requests.read(request["size"])
            limit_processor(self._limits)
            self._say(self._answer(request, data) | {"spent": has_grown(self._limits)})

    def _answer(self, request: dict[str, Any], data: bytes) -> dict[str, Any]:
        reading = Reading(self._limits, self._ocr.read)
        try:
            if request["path"] is not None:
                data = self._file(Path(request["path"]))
            self._read(reading, data, request["name"], request["media_type"])
        except Unreadable as error:
            return {"unreadable": error.reason, "code": error.code}
        except MemoryError:
            return {"unreadable": out_of_memory(self._limits), "code": "invalid_file"}
        return {
            "read": True,
            "title": clean(reading.title).strip(),
            "media_type": reading.media_type,
            "notes": _notes(reading),
        }

    def _file(self, path: Path) -> bytes:
        try:
            if not path.is_file():
                raise Unreadable("There is no such file, or it is a folder.")
            if path.stat().st_size > self._limits.file_mb * MIB:
                raise Unreadable(too_large(self._limits))
            return path.read_bytes()
        except OSError as error:
            raise Unreadable(f"The file cannot be opened: {error.strerror or error}.") from error

    def _read(self, reading: Reading, data: bytes, name: str, media_type: str | None) -> None:
        characters = 0
        for section in reading.sections(data, name, media_type):
            text = clean(section.text)
            if not text.strip():
                continue
            characters += len(text)
            if characters > self._limits.characters:
                raise too_much("character", self._limits.characters, "characters")
            for begin in range(0, len(text), TEXT_PART):
                self._say({"text": text[begin : begin + TEXT_PART]})
            self._say({"place": clean(section.location)})
        if not characters:
            raise Unreadable(" ".join(["There is no text in the file.", *_notes(reading)]))


def _notes(reading: Reading) -> list[str]:
    notes = [clean(note) for note in reading.notes[:NOTES_MAX]]
    more = len(reading.notes) - len(notes)
    verb = "is" if more == 1 else "are"
    return [*notes, f"There {verb} {counted(more, 'more such note')}."] if more else notes


def main() -> None:
    """Takes the limits from the command line, and serves."""
    limits = ParsingSettings.model_validate_json(sys.argv[1])
    limit_memory(limits)
    sys.setrecursionlimit(NESTING)
    os.nice(NICENESS)
    # Ctrl-C goes to the server, which ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    # Nothing that a library prints may get between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        answers.write(pack(message))
        answers.flush()

    say({"ready": True})
    Worker(limits, sys.stdin.buffer, say).run()


if __name__ == "__main__":
    main()
