"""llama.cpp as a shared library: found, configured before it loads, and made to log like Python."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import os
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from hookline.errors import StartError

log = logging.getLogger("hookline.llama.cpp")

_DEBUG, _WARNING, _ERROR, _CONTINUED = 1, 3, 4, 5  # ggml_log_level; 2 is information
_LEVELS = {_WARNING: logging.WARNING, _ERROR: logging.ERROR}


class LogLine(NamedTuple):
    """One line of the library's log; ``level`` is one of Python's."""

    level: int
    text: str


class LibraryLog:
    """Takes the library's log: its chatter as debug messages, its warnings and errors as such.

    ``lines`` holds the latest that are no debug output, for whoever needs to quote them. While
    ``quiet`` nothing is louder than debug: what goes wrong while a model loads becomes one error.
    """

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque(maxlen=400)
        self.quiet = False
        self._level = logging.DEBUG
        self._partial = ""

    def write(self, level: int, text: bytes) -> None:
        """Takes what the library writes: whole lines, or parts of one."""
        if level != _CONTINUED:
            self._level = _LEVELS.get(level, logging.DEBUG)
        *lines, self._partial = (self._partial + text.decode(errors="replace")).split("\n")
        for line in filter(None, map(str.strip, lines)):
            if level != _DEBUG:
                self.lines.append(LogLine(self._level, line))
            log.log(logging.DEBUG if self.quiet else self._level, "%s", line)

    @contextlib.contextmanager
    def kept_quiet(self) -> Iterator[None]:
        """Forgets what was said, and says nothing loud until the end."""
        self.lines.clear()
        self.quiet = True
        try:
            yield
        finally:
            self.quiet = False

    def first_error(self) -> str:
        """The first error since the log was cleared, which names the cause; "" for none."""
        return next((line.text for line in self.lines if line.level == logging.ERROR), "")


class Library(NamedTuple):
    """The C functions of ``llama_cpp.llama_cpp`` and their log.

    ``keep`` holds callbacks that C code points to.
    """

    api: Any
    log: LibraryLog
    keep: tuple[object, ...]


@functools.cache
def library() -> Library:
    """Loads the library, once a process. Raises StartError where it is missing or broken."""
    # Tiled matrix products sum in another order for other batch widths. Read once, at loading.
    os.environ.setdefault("GGML_CPU_TILED_MM", "0")
    try:
        from llama_cpp import llama_cpp as api
    except ImportError as error:
        raise StartError(
            f"The llama.cpp engine needs llama-cpp-python ({error}). "
            "Install it with: pip install 'hookline[llamacpp]'"
        ) from error
    except (OSError, RuntimeError) as error:
        raise StartError(f"llama-cpp-python is installed but cannot be used: {error}") from error
    sink = LibraryLog()

    @api.llama_log_callback  # type: ignore[untyped-decorator]
    def write(level: int, text: bytes, _: ctypes.c_void_p) -> None:
        sink.write(level, text)

    api.llama_log_set(write, None)
    api.llama_backend_init()
    return Library(api, sink, (write,))


@functools.cache
def vision_library() -> Any:
    """Loads mtmd, the library's part for images, once a process: the C functions of
    ``llama_cpp.mtmd_cpp``. Raises StartError where it is missing or broken."""
    loaded = library()
    try:
        from llama_cpp import mtmd_cpp as api
    except (ImportError, OSError, RuntimeError) as error:
        raise StartError(
            f"This llama-cpp-python was built without images ({error}). Take out [model] mmproj, "
            "or install it again."
        ) from error
    api.mtmd_helper_log_set(loaded.keep[0], None)
    return api
