"""A process of its own that reads pages.

The libraries that do it hold the interpreter's lock for as long as a page takes, and a hostile
page can make that very long, or use up the memory. In a process they can do neither to the server.

Run as ``python -m hookline_websearch.content.worker``: a line of JSON with the body after it comes
in for each page, and a line of JSON goes out.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import asdict, replace
from typing import BinaryIO

from hookline_websearch.content.extract import extract

MEMORY = 2 * 2**30
"""Bytes of address space that reading may use."""

NICENESS = 5
"""Reading steps back behind the model and the server."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until there are no more requests."""
    answers.write(b"{}\n")
    answers.flush()
    for line in requests:
        request = json.loads(line)
        body = requests.read(request.pop("size"))
        answers.write(json.dumps(_answer(body, request)).encode() + b"\n")
        answers.flush()


def _answer(body: bytes, request: dict[str, str]) -> dict[str, object]:
    most = int(request.pop("most"))
    try:
        read = extract(body, **request)
    except Exception as error:  # whatever a page does, the next one is to be read
        return {"failed": type(error).__name__}
    return asdict(replace(read, text=read.text[:most], cut=read.cut or len(read.text) > most))


def main() -> None:
    """Limits itself, then serves."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.nice(NICENESS)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # A library that prints must not be taken for an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
