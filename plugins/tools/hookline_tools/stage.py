"""Takes the calls out of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from hookline import Delta, Held, ToolCallDelta, overlap
from hookline_tools.format import ToolFormat
from hookline_tools.reading import Reading, Text


class CallStage:
    """Turns the calls of one answer into deltas of their own; text before them is content.

    White space before the first call is dropped. The answer ends as ``tool_calls`` when its calls
    are complete and nothing more can come, or the model ended it; one that was cut stays as the
    engine ended it.
    """

    def __init__(
        self,
        form: ToolFormat,
        schemas: Mapping[str, Mapping[str, Any]],
        new_id: Callable[[], str],
        *,
        parallel: bool,
    ) -> None:
        self._form = form
        self._schemas = schemas
        self._new_id = new_id
        self._parallel = parallel and form.parallel
        self._held = Held()
        self._text = Text()
        self._reading: Reading[None] | None = None
        self._no_calls = False
        self._complete = False
        self._ended = False
        self._calls = 0
        self._said: list[ToolCallDelta] = []

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Takes the next text of the answer."""
        if delta.finish is not None:
            rest = list(self.feed(replace(delta, finish=None)))
            return [*rest, *self._held.take(), Delta(finish=delta.finish)]
        if delta.channel != "content" or self._no_calls:
            return [delta]
        if self._reading is None:
            self._held.add(delta)
            return self._look()
        # An end token has no text: it says that the model, not a limit, ended the answer.
        self._ended |= any(token.special and not token.text for token in delta.tokens)
        return self._read(delta.text)

    def finish(self) -> Iterable[Delta]:
        """The engine has ended: text that was no call after all, or the calls' own end."""
        if self._complete and self._ended:
            return [Delta(finish="tool_calls")]
        return self._held.take()

    def _look(self) -> list[Delta]:
        """Looks for the first call in the text so far."""
        text = self._held.text
        at = text.find(self._form.trigger)
        if at >= 0 and (self._form.anywhere or not text[:at].strip()):
            content = self._held.release(len(text[:at].rstrip()))
            self._held.take()
            self._reading = self._read_calls()
            return [*content, *self._read(text[at:])]
        if not self._form.anywhere and not self._form.trigger.startswith(text.strip()):
            self._no_calls = True
            return self._held.take()
        kept = text[: len(text) - overlap(text, self._form.trigger)].rstrip()
        return self._held.release(len(kept))

    def _read(self, text: str) -> list[Delta]:
        """Reads on in the calls."""
        self._text.ahead += text
        done = self._reading is None or next(self._reading, self) is self
        deltas = [Delta(channel="tool_call", tool_call=said) for said in self._said]
        self._said = []
        return [*deltas, Delta(finish="tool_calls")] if done else deltas

    def _read_calls(self) -> Reading[None]:
        form, text = self._form, self._text
        yield from text.literal(form.open)
        while True:
            yield from text.literal(form.before_name)
            yield from self._read_call()
            yield from text.literal(form.end)
            self._complete = not form.close
            if not self._parallel:
                break
            following = form.separator + form.before_name
            choices = (form.close, following) if form.close else (following,)
            if (yield from text.peek(*choices)) == form.close:
                break
            yield from text.literal(form.separator)
            self._complete = False
        yield from text.literal(form.close)

    def _read_call(self) -> Reading[None]:
        name: list[str] = []
        yield from self._text.until(self._form.after_name, name.append)
        called = "".join(name)
        index, self._calls = self._calls, self._calls + 1
        self._said.append(ToolCallDelta(index, self._new_id(), called))

        def say(piece: str) -> None:
            last = self._said[-1] if self._said else None
            if last is not None and last.index == index and last.name is None:
                self._said[-1] = replace(last, arguments=last.arguments + piece)
            elif piece:
                self._said.append(ToolCallDelta(index, arguments=piece))

        yield from self._form.arguments.read(self._text, self._schemas[called], say)
