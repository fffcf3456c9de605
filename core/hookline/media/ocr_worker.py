"""The process that reads the text in images, and can be stopped.

Run as ``python -m hookline.media.ocr_worker``, with the bytes of memory that it may use. For each
image a line of JSON (``width``, ``height``) and its pixels come in. Lines of JSON go out: how many
``lines`` of text there are, then the ``text`` of each as soon as it is read. The first says that
it is ready.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO

from hookline.media.ocr import TextReader

Say = Callable[[dict[str, Any]], None]


def serve(reader: TextReader, requests: BinaryIO, say: Say) -> None:
    """Answers until there are no more requests."""
    from PIL import Image

    say({"ready": True})
    for line in requests:
        size = json.loads(line)
        width, height = size["width"], size["height"]
        pixels = requests.read(width * height * 3)
        lines = reader.find(Image.frombytes("RGB", (width, height), pixels))
        say({"lines": len(lines)})
        for found in lines:
            say({"text": reader.read_line(found)})


def limit(memory: int) -> None:
    """Lets the system refuse memory beyond the limit.

    Data is what counts: libraries reserve far more addresses than they use.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Limits itself, loads the models, then serves."""
    limit(int(sys.argv[1]))
    # Ctrl-C goes to the server, which ends its processes itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    # Nothing that a library prints may get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message).encode() + b"\n")
        answers.flush()

    serve(TextReader(), sys.stdin.buffer, say)


if __name__ == "__main__":
    main()
