"""Takes the thought out of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum, auto

from hookline import Delta, Usage, overlap
from hookline_thinking.tags import Tags


class _Where(Enum):
    START = auto()
    THOUGHT = auto()
    SEAM = auto()
    ANSWER = auto()


class ThoughtStage:
    """Moves the thought of one answer to the ``reasoning`` channel, without its tags.

    A thought stands at the very beginning: anywhere else a tag is text. The prompt has opened it
    already; a model that opens it again, even several times, does no harm. White space around a
    thought belongs to neither channel.
    """

    opened = True

    def __init__(self, tags: Tags, usage: Usage) -> None:
        self._tags = tags
        self._usage = usage
        self._where = _Where.START
        self._held = Delta()
        self._said = False

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Sorts the next text, holding back what may be part of a tag."""
        if delta.finish is not None:
            rest = self.feed(replace(delta, finish=None))
            return [*rest, *self.finish(), Delta(finish=delta.finish)]
        if self._where is _Where.ANSWER or delta.channel != "content":
            return [delta]
        held, self._held = self._held, Delta()
        joined = Delta(held.text + delta.text, tokens=held.tokens + delta.tokens)
        return list(self._sorted(joined))

    def finish(self) -> Iterable[Delta]:
        """The answer is over; of what is held only the start of an answer is worth saying."""
        held, self._held = self._held, Delta()
        if self._where is _Where.START and not self.opened and (held.text or held.tokens):
            return [held]
        return []

    def _sorted(self, delta: Delta) -> Iterator[Delta]:
        if self._where is _Where.START:
            yield from self._start(delta)
        elif self._where is _Where.THOUGHT:
            yield from self._think(delta)
        elif self._where is _Where.SEAM:
            yield from self._seam(delta)

    def _start(self, delta: Delta) -> Iterator[Delta]:
        text, begin = delta.text.lstrip(), self._tags.begin
        if text.startswith(begin):
            self.opened = True
            yield from self._start(replace(delta, text=text.removeprefix(begin)))
        elif begin.startswith(text):
            self._held = delta
        elif self.opened:
            self._where = _Where.THOUGHT
            yield from self._think(delta)
        else:
            self._where = _Where.ANSWER
            yield delta

    def _think(self, delta: Delta) -> Iterator[Delta]:
        self._usage.reasoning_tokens += len(delta.tokens)
        thought, end, answer = delta.text.partition(self._tags.end)
        if not end:
            thought = thought[: len(thought) - overlap(thought, self._tags.end)]
        text = thought.rstrip() if self._said else thought.strip()
        self._said = self._said or bool(text)
        yield from self.reasoning(Delta(text, "reasoning", delta.tokens))
        if end:
            self._where = _Where.SEAM
            yield from self.closed()
            yield from self._seam(Delta(answer))
        else:
            at = len(thought.rstrip()) if self._said else len(thought)
            self._held = Delta(delta.text[at:])

    def _seam(self, delta: Delta) -> Iterator[Delta]:
        text = delta.text.lstrip()
        if text:
            self._where = _Where.ANSWER
            yield replace(delta, text=text)

    def reasoning(self, delta: Delta) -> Iterable[Delta]:
        """What becomes of a part of the thought."""
        yield delta

    def closed(self) -> Iterable[Delta]:
        """The thought is over."""
        return ()


class HiddenThoughtStage(ThoughtStage):
    """Takes out a thought that nobody asked for.

    Where the model is not known to think, what begins like a thought and is never closed was
    none: it is said at the end.
    """

    opened = False

    def __init__(self, tags: Tags, usage: Usage) -> None:
        super().__init__(tags, usage)
        self._fed: list[Delta] = []

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Sorts the next text."""
        if self._where in (_Where.START, _Where.THOUGHT):
            self._fed.append(delta)
        return super().feed(delta)

    def reasoning(self, delta: Delta) -> Iterable[Delta]:
        """Says nothing of it."""
        return ()

    def closed(self) -> Iterable[Delta]:
        """It was a thought."""
        self._fed.clear()
        return ()

    def finish(self) -> Iterable[Delta]:
        """What turned out to be no thought."""
        open_still = self.opened and self._where in (_Where.START, _Where.THOUGHT)
        if not open_still or self._tags.native:
            return super().finish()
        if self._where is _Where.THOUGHT:
            self._usage.reasoning_tokens -= sum(len(delta.tokens) for delta in self._fed)
        return self._fed
