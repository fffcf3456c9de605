"""Threads that embed one text after the other: questions first, then every caller in turn."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from hookline import Unavailable
from hookline_knowledge.problems import KnowledgeUnavailable
from hookline_knowledge.wording import counted

Kind = Literal["query", "document"]
Result = TypeVar("Result")

MOST_TEXTS = 20_000
"""Texts that may wait; whoever brings more is told to come back."""


class EmbedderBusy(Unavailable):
    """Too many texts wait already."""

    code = "queue_full"


@dataclass(slots=True, eq=False)
class _Order(Generic[Result]):
    """What one caller wants: texts, of which the first ``begun`` are at work or done."""

    texts: Sequence[str]
    answer: Future[list[Result]]
    begun: int = 0
    results: dict[int, Result] = field(default_factory=dict)


class Workers(Generic[Result]):
    """Runs ``work`` on texts in ``threads`` threads.

    Each text is worked on alone, so that its result does not depend on its neighbours, and callers
    take turns with every text: a long order delays a short one by one text.
    """

    def __init__(self, work: Callable[[str], Result], *, threads: int, name: str) -> None:
        self._work = work
        self._queues: dict[Kind, deque[_Order[Result]]] = {"query": deque(), "document": deque()}
        self._news = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name} {number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, texts: Sequence[str], kind: Kind) -> list[Result]:
        """The result of every text, in order. Cancelling ends it after the texts at work.

        Raises EmbedderBusy where too many texts wait.
        """
        if not texts:
            return []
        order = _Order(texts, Future[list[Result]]())
        with self._news:
            self._admit(len(texts))
            self._queues[kind].append(order)
            self._news.notify_all()
        return await asyncio.wrap_future(order.answer)

    def _admit(self, more: int) -> None:
        if self._closed:
            raise KnowledgeUnavailable("The embedding model is being closed.", retry_after=1)
        orders = (order for queue in self._queues.values() for order in queue)
        waiting = sum(len(order.texts) - order.begun for order in orders)
        if waiting and waiting + more > MOST_TEXTS:
            raise EmbedderBusy(
                f"Too much waits to be embedded: {counted(waiting, 'text')}. Try again later.",
                retry_after=10,
            )

    async def close(self) -> None:
        """Ends all threads; what waits is cancelled."""
        with self._news:
            self._closed = True
            for queue in self._queues.values():
                for order in queue:
                    order.answer.cancel()
                queue.clear()
            self._news.notify_all()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            order, place = task
            try:
                result = self._work(order.texts[place])
            except BaseException as error:
                self._fail(order, error)
            else:
                self._done(order, place, result)

    def _next(self) -> tuple[_Order[Result], int] | None:
        """The next text: of the queries, else of the documents, the order that waits longest."""
        with self._news:
            while not self._closed:
                for queue in self._queues.values():
                    while queue:
                        order = queue.popleft()
                        if order.answer.done():
                            continue
                        place = order.begun
                        order.begun += 1
                        if order.begun < len(order.texts):
                            queue.append(order)
                        return order, place
                self._news.wait()
        return None

    def _done(self, order: _Order[Result], place: int, result: Result) -> None:
        with self._news:
            order.results[place] = result
            complete = len(order.results) == len(order.texts)
        if complete and order.answer.set_running_or_notify_cancel():
            order.answer.set_result([order.results[i] for i in range(len(order.texts))])

    def _fail(self, order: _Order[Result], error: BaseException) -> None:
        with self._news:
            first = not order.answer.done()
            if first and order.answer.set_running_or_notify_cancel():
                order.answer.set_exception(error)
