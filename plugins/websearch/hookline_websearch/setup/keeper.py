"""Runs a command for as long as its own standard input is open: `python keeper.py COMMAND…`.

Whoever starts it holds the other end of a pipe there. The system closes that end when its holder
dies, however it dies, and then the command and all that it started are ended too. A program of its
own: it imports nothing of Hookline.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 5.0


def main() -> int:
    """Runs the command; returns its exit status."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # before there is anything to end
        signal.signal(number, lambda *_: asked.set())
    with (
        subprocess.Popen(  # noqa: S603 - the operator's own command
            sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True
        ) as child
    ):
        threading.Thread(target=wait_for_eof, args=(asked,), daemon=True).start()
        threading.Thread(target=end_when, args=(asked, child), daemon=True).start()
        status = child.wait()
        send(child, signal.SIGKILL)  # what it left behind
        return status


def wait_for_eof(asked: threading.Event) -> None:
    """Asks for the end once nobody holds the pipe any more."""
    while os.read(0, 4096):
        pass
    asked.set()


def end_when(asked: threading.Event, child: subprocess.Popen[bytes]) -> None:
    """Ends the command once that is asked for."""
    asked.wait()
    end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Asks the command to end, and ends it where it does not."""
    send(child, signal.SIGTERM)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        send(child, signal.SIGKILL)


def send(child: subprocess.Popen[bytes], number: int) -> None:
    """A signal to the command and all that it started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main())
