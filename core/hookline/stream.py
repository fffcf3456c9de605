"""From the engine's tokens to the client's deltas: stages in a row, one row per choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from hookline.engine import FinishReason, Token

Channel = Literal["content", "reasoning", "tool_call"]


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A part of a tool call: ``id`` and ``name`` come once, ``arguments`` in pieces."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of answer on a channel.

    ``tokens`` are those whose text begins in this delta; they carry the logprobs and the count.
    ``finish`` ends the choice and overrides the engine's reason.
    """

    text: str = ""
    channel: Channel = "content"
    tokens: tuple[Token, ...] = ()
    tool_call: ToolCallDelta | None = None
    finish: FinishReason | None = None


class Stage(Protocol):
    """Turns deltas into deltas; holds the state of one choice of one request."""

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """What follows from one more delta; may hold it back, split it or move its channel."""
        ...

    def finish(self) -> Iterable[Delta]:
        """The engine has ended: what was held back."""
        ...


class Pipeline:
    """Stages in a row. After a delta with ``finish`` nothing more is taken."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = list(stages)
        self.finished: FinishReason | None = None

    def feed(self, delta: Delta) -> list[Delta]:
        """Sends one delta through every stage."""
        return self._run([delta], 0)

    def finish(self) -> list[Delta]:
        """Ends the stages first to last, so that what one lets go passes the ones behind it."""
        deltas: list[Delta] = []
        for index, stage in enumerate(self._stages):
            if self.finished is None:
                deltas += self._run(stage.finish(), index + 1)
        return deltas

    def _run(self, deltas: Iterable[Delta], start: int) -> list[Delta]:
        if self.finished is not None:
            return []
        for stage in self._stages[start:]:
            deltas = [out for delta in deltas for out in stage.feed(delta)]
        return self._until_finish(deltas)

    def _until_finish(self, deltas: Iterable[Delta]) -> list[Delta]:
        kept: list[Delta] = []
        for delta in deltas:
            kept.append(delta)
            if delta.finish is not None:
                self.finished = delta.finish
                break
        return kept


class DropSpecial:
    """Removes the text of control tokens from the answer; their count stays.

    Runs after the plugins' stages, which may need to see such tokens (tool call markers).
    """

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Drops the text when all of it is control tokens."""
        if delta.tokens and all(token.special for token in delta.tokens):
            yield replace(delta, text="")
        else:
            yield delta

    def finish(self) -> Iterable[Delta]:
        """Holds nothing back."""
        return ()


class Held:
    """Deltas that a stage keeps back, in order, to let go of their text piece by piece."""

    def __init__(self) -> None:
        self._deltas: list[Delta] = []

    def __bool__(self) -> bool:
        return bool(self._deltas)

    @property
    def text(self) -> str:
        """All their text."""
        return "".join(delta.text for delta in self._deltas)

    def add(self, delta: Delta) -> None:
        """Keeps one more."""
        self._deltas.append(delta)

    def release(self, length: int) -> list[Delta]:
        """Takes ``length`` characters from the front."""
        released: list[Delta] = []
        # A delta without text is the first part of a character: it stays with what follows.
        while self._deltas and length and len(self._deltas[0].text) <= length:
            delta = self._deltas.pop(0)
            length -= len(delta.text)
            released.append(delta)
        if self._deltas and length:
            first = self._deltas[0]
            released.append(replace(first, text=first.text[:length], finish=None))
            self._deltas[0] = replace(first, text=first.text[length:], tokens=())
        return released

    def take(self) -> list[Delta]:
        """Takes all of them."""
        taken, self._deltas = self._deltas, []
        return taken


class StopStrings:
    """Ends the answer before the first stop string, also one that crosses token borders.

    Looks at the ``content`` channel only. Holds back just the longest tail that could still
    become a stop string. Of two stop strings that end at different places the one completed
    first wins; of two completed at once the one that begins first.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = Held()

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Lets through what can no longer be part of a stop string."""
        if delta.channel != "content" or not self._stops:
            return [*self.finish(), delta] if self._held else [delta]
        self._held.add(delta)
        text = self._held.text
        cut = self._first_stop(text, len(text) - len(delta.text))
        if cut is not None:
            released = self._held.release(cut)
            self._held.take()
            return [*released, Delta(finish="stop")]
        if delta.finish is not None:
            return self.finish()
        return self._held.release(len(text) - self._longest_tail(text))

    def finish(self) -> Iterable[Delta]:
        """The answer ended by itself: what was held back was no stop string."""
        return self._held.take()

    def _first_stop(self, text: str, old: int) -> int | None:
        """Where the answer ends if ``text`` holds a stop string, else None.

        No stop string ends before ``old``: that text was looked at already.
        """
        found = [
            (at + len(stop), at)
            for stop in self._stops
            if (at := text.find(stop, max(0, old - len(stop) + 1))) >= 0
        ]
        return min(found)[1] if found else None

    def _longest_tail(self, text: str) -> int:
        return max(overlap(text, stop) for stop in self._stops)


def overlap(text: str, mark: str) -> int:
    """The length of the longest end of ``text`` that begins ``mark`` without being all of it."""
    for length in range(min(len(text), len(mark) - 1), 0, -1):
        if text.endswith(mark[:length]):
            return length
    return 0
