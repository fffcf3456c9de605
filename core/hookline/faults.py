"""What foreign code raised, in one line: what, and where in that code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from traceback import FrameSummary, extract_tb, walk_tb

from hookline.errors import HooklineError


def described(error: BaseException) -> str:
    """What was raised, and the place in the plugin that it came from or went through.

    What Hookline raises on purpose says by itself what is wrong.
    """
    if isinstance(error, HooklineError):
        return "; ".join(str(error).splitlines())
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    told = ": ".join(filter(None, (type(error).__name__, str(error))))
    return " ".join(f"{told}{_place(error)}".split())


def _place(error: BaseException) -> str:
    """The innermost line of the first package on the stack that is neither ours nor Python's: what
    that one calls may raise deep inside of libraries, which nobody who wrote it knows."""
    frames = [*_foreign(error)]
    own = [frame for top, frame in frames if top == frames[0][0]]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _foreign(error: BaseException) -> Iterator[tuple[str, FrameSummary]]:
    """The frames of others, each with the name of its package, outermost first."""
    trace = error.__traceback__
    for (frame, _), summary in zip(walk_tb(trace), extract_tb(trace), strict=True):
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top != "hookline" and top not in sys.stdlib_module_names:
            yield top, summary
