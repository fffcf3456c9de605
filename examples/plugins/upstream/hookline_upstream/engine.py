"""The engine: tokens from afar, with the same promises as near ones where they can be kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import httpx

from hookline import (
    Card,
    EngineState,
    EngineStats,
    EngineUnavailable,
    InvalidRequest,
    Job,
    StartError,
    Unavailable,
    Vocabulary,
)
from hookline.config import ModelSettings
from hookline_upstream.dialects import Dialect, find
from hookline_upstream.generation import UpstreamGeneration
from hookline_upstream.settings import UpstreamSettings

T = TypeVar("T")


class UpstreamEngine:
    """Fulfils `hookline.Engine` over HTTP."""

    def __init__(self, model: ModelSettings, settings: UpstreamSettings) -> None:
        self._model, self._settings = model, settings
        self._options = client_options(settings)
        self._sync = httpx.Client(**self._options)
        self._http = httpx.AsyncClient(**self._options)
        self._places = asyncio.Semaphore(model.parallel)
        self._dialect: Dialect
        self._card: Card
        self._jobs = self._running = 0
        self.state: EngineState = "loading"

    @property
    def card(self) -> Card:
        """What is known of the model."""
        return self._card

    async def load(self, progress: Callable[[float], None]) -> None:
        """Finds out what the server is. Raises StartError where it cannot be used."""
        try:
            self._card = await asyncio.to_thread(self._look)
        except (httpx.HTTPError, LookupError, ValueError) as error:
            self.state = "failed"
            raise StartError(
                f"The upstream {self._settings.url} cannot be used: {error}. "
                "See [plugin.upstream] url and api_key."
            ) from error
        progress(1.0)
        self.state = "ready"

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Asks the server's tokenizer. The beginning token is the template's to write."""
        return self._asked(lambda: self._dialect.tokenize(self._sync, text, special=special))

    def detokenize(self, ids: Sequence[int]) -> str:
        """Asks the server's tokenizer."""
        return self._asked(lambda: self._dialect.detokenize(self._sync, ids))

    def vocabulary(self) -> Vocabulary:
        """Is not told by the server. Raises InvalidRequest: constraints cannot be compiled."""
        raise InvalidRequest(_NO_LOGITS)

    def submit(self, job: Job) -> UpstreamGeneration:
        """Sends a job. Raises Unavailable where too many wait, InvalidRequest for what cannot be
        kept from afar."""
        if job.grammar or job.opening or job.stop_tokens:
            raise InvalidRequest(_NO_LOGITS)
        if self._jobs >= self._model.parallel + self._settings.max_queue:
            raise Unavailable("Too many requests wait for the upstream.", code="queue_full")
        self._jobs += 1
        return UpstreamGeneration(self, request_body(job, self._model.source), len(job.prompt))

    def stats(self) -> EngineStats:
        """What is at work and what waits for a place."""
        return EngineStats(running=self._running, queued=self._jobs - self._running)

    async def close(self) -> None:
        """Closes the connections, which ends everything at work there."""
        self.state = "closed"
        await self._http.aclose()
        self._sync.close()

    # For its generations

    async def place(self) -> float:
        """Waits for a place; gives the seconds it took."""
        began = time.perf_counter()
        await self._places.acquire()
        self._running += 1
        return time.perf_counter() - began

    def leave(self, *, had_place: bool) -> None:
        """A generation is over."""
        self._jobs -= 1
        if had_place:
            self._running -= 1
            self._places.release()

    async def open(self, body: dict[str, Any]) -> httpx.Response:
        """The beginning of a streamed answer, after as many tries as it takes.

        Raises EngineUnavailable when it cannot be had, InvalidRequest when the server refuses.
        """
        problem = ""
        for attempt in range(self._settings.retries + 1):
            if attempt:
                await asyncio.sleep(min(2.0**attempt / 8, 4.0))
            try:
                request = self._http.build_request("POST", "/v1/completions", json=body)
                response = await self._http.send(request, stream=True)
            except httpx.TransportError as error:
                problem = str(error) or type(error).__name__
                continue
            if response.status_code == 200:
                return response
            problem = await _refusal(response)
            if response.status_code not in (429, 502, 503):
                break
        raise EngineUnavailable(f"The upstream does not answer: {problem}")

    def _look(self) -> Card:
        self._dialect = find(self._sync, self._settings.kind)
        return Card(
            id=self._model.source,
            engine="upstream",
            context=self._model.context,
            parallel=self._model.parallel,
            exact_batches=False,
            vocabulary=ANY_TOKEN,
            chat_template=self._dialect.template(self._sync),
            details={"upstream": self._dialect.name},
        )

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except httpx.HTTPError as error:
            raise EngineUnavailable(f"The upstream's tokenizer does not answer: {error}") from error


ANY_TOKEN = 2**31
"""How many tokens there may be, since the server does not say: it refuses those it has not."""

_NO_LOGITS = (
    "This server's model runs elsewhere, where no constraint can be enforced: response_format, "
    "guaranteed tool calls and thinking are not available with it."
)


def client_options(settings: UpstreamSettings) -> dict[str, Any]:
    """How both clients are made; the environment's proxies are not for this server."""
    key = settings.api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    timeout = httpx.Timeout(settings.timeout_seconds, pool=None)
    url = str(settings.url).rstrip("/")
    limits = httpx.Limits(max_connections=None)
    return {
        "base_url": url,
        "headers": headers,
        "timeout": timeout,
        "limits": limits,
        "trust_env": False,
    }


def request_body(job: Job, model: str) -> dict[str, Any]:
    """A job as a body of ``/v1/completions``."""
    sampling = job.sampling
    body: dict[str, Any] = {
        "model": model,
        "prompt": list(job.prompt),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": job.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or None,
        "min_p": sampling.min_p or None,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "logit_bias": {str(token): bias for token, bias in sampling.logit_bias.items()} or None,
        "seed": sampling.seed,
        "logprobs": job.logprobs,
        "ignore_eos": job.ignore_end or None,
    }
    return {name: value for name, value in body.items() if value is not None}


async def _refusal(response: httpx.Response) -> str:
    """What the server says, and the response closed."""
    try:
        await response.aread()
        error = response.json()["error"]
        message = error["message"] if isinstance(error, dict) else error
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        message = response.reason_phrase
    finally:
        await response.aclose()
    return f"{response.status_code}: {message}"
