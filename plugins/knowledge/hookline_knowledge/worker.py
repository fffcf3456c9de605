"""Who works on the collections: any number of processes, each of which may die at any time."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

LOCK = "lock"


class Worker:
    """This process among those that share a folder.

    Its ``folder`` is for files on their way. A lock in it, which the operating system takes back
    from a process that ends, tells the others whether this one still works: so no clock can err,
    and what a killed process had begun is taken over at once.
    """

    def __init__(self, shared: Path) -> None:
        self.id = secrets.token_hex(8)
        self._shared = shared
        self._lock: IO[bytes] | None = None

    @property
    def folder(self) -> Path:
        """Where this worker's files on their way are."""
        return self._shared / self.id

    def begin(self) -> None:
        """Makes the folder, locked before anybody can see it."""
        self._shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        hidden = self._shared / f".{self.id}"
        hidden.mkdir(mode=0o700)
        self._lock = (hidden / LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        hidden.rename(self.folder)

    def end(self) -> None:
        """Leaves nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()

    def is_alive(self, id: str) -> bool:
        """Whether the worker of that id still works."""
        return id == self.id or _is_locked(self._shared / id / LOCK)

    def clean_up(self) -> None:
        """Removes what workers left behind that ended without a chance to."""
        for folder in list(self._dead()):
            shutil.rmtree(folder, ignore_errors=True)

    def _dead(self) -> Iterator[Path]:
        for folder in self._shared.iterdir():
            if not folder.name.startswith(".") and not self.is_alive(folder.name):
                yield folder


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
