"""``POST /v1/completions``: raw prompts, without messages and template."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from quart import Blueprint, Response, g

from hookline.api.answers import completion_logprobs, envelope, progress_body
from hookline.api.bodies import Completion
from hookline.api.choices import Event, copies, events
from hookline.api.describe import describe
from hookline.api.http import json_response, read_json
from hookline.api.promises import refuse_on_raw_prompts
from hookline.api.schema import CompletionRequest
from hookline.api.sse import event_stream
from hookline.api.validation import validate
from hookline.api.work import Work
from hookline.engine import Engine, Job, Token
from hookline.errors import ContextLengthExceeded, InvalidRequest
from hookline.exchange import Exchange
from hookline.kernel import Kernel


def blueprint(kernel: Kernel) -> Blueprint:
    """The route."""
    routes = Blueprint("completions", __name__)

    @routes.post("/v1/completions")
    @describe(request=CompletionRequest, response=Completion, streams=True, generates=True)
    async def completions() -> Response:
        """Completes raw prompts."""
        asked = validate(CompletionRequest, await read_json())
        refuse_on_raw_prompts(asked.model_extra or {})
        kernel.refuse_other_model(asked.model)
        kernel.report_ignored(list(asked.model_extra or ()))
        work = Work.begin(kernel, kernel.exchange(asked, g.caller, prefix="cmpl"))
        with work.remembered():
            echoes = await prepare(work, asked)
            opening = kernel.plugins.opening_fields(work.exchange)
            headers = kernel.plugins.response_headers(work.exchange)
            if asked.stream:
                response = event_stream(chunks(work, asked, echoes, opening))
            else:
                response = json_response({**opening, **await whole(work, asked, echoes)})
        response.headers.update(headers)
        return response

    return routes


async def prepare(work: Work, asked: CompletionRequest) -> list[str]:
    """From the body to jobs in the queue. Returns the text to echo, for each choice."""
    kernel = work.kernel
    await kernel.plugins.admit(work.exchange)
    prompts = await asyncio.to_thread(prompt_ids, kernel.engine, asked)
    texts = await asyncio.to_thread(echo_texts, kernel.engine, asked)
    jobs, echoes = [], []
    for ids, text in zip(prompts, texts, strict=True):
        job = Job(
            ids,
            max_tokens=asked.limit,
            sampling=kernel.sampling(asked),
            logprobs=asked.logprobs_wanted,
        )
        await kernel.plugins.shape_job(work.exchange, job)
        jobs += copies(job, asked.n)
        echoes += [text] * asked.n
    await work.submit(jobs, asked.stops)
    return echoes


def prompt_ids(engine: Engine, asked: CompletionRequest) -> list[list[int]]:
    """The prompts as ids; control tokens in a raw prompt are meant. Raises InvalidRequest."""
    if asked.echo and asked.logprobs is not None:
        raise InvalidRequest(
            "'echo' together with 'logprobs' is not supported: the prompt's own log probabilities "
            "are not computed. Leave one of them out.",
            param="echo",
        )
    prompts = []
    for prompt in asked.prompts:
        ids = (
            engine.tokenize(prompt, special=True, bos=True)
            if isinstance(prompt, str)
            else check_ids(engine, prompt, "prompt")
        )
        _check_length(engine, ids)
        prompts.append(ids)
    if not prompts:
        raise InvalidRequest("'prompt' is an empty list.", param="prompt")
    return prompts


def echo_texts(engine: Engine, asked: CompletionRequest) -> list[str]:
    """What each prompt's answer begins with: the prompt's text where an echo was asked for."""
    if not asked.echo:
        return [""] * len(asked.prompts)
    return [
        prompt if isinstance(prompt, str) else engine.detokenize(prompt) for prompt in asked.prompts
    ]


def check_ids(engine: Engine, ids: Sequence[int], param: str) -> list[int]:
    """Token ids from a client. Raises InvalidRequest for one outside the vocabulary."""
    largest = engine.card.vocabulary - 1
    for token in ids:
        if token > largest:
            raise InvalidRequest(
                f"'{param}': {token} is no token id; they go from 0 to {largest}.", param=param
            )
    return list(ids)


def _check_length(engine: Engine, ids: Sequence[int]) -> None:
    context = engine.card.context
    if not ids:
        raise InvalidRequest("'prompt' is empty, and this model needs something.", param="prompt")
    if len(ids) >= context:
        raise ContextLengthExceeded(
            f"This model's context is {context} tokens, and the prompt has {len(ids)}, which "
            "leaves none for the answer.",
            param="prompt",
        )


async def chunks(
    work: Work, asked: CompletionRequest, echoes: Sequence[str], opening: Mapping[str, Any]
) -> AsyncGenerator[dict[str, Any], None]:
    """The answer as chunks: echo, text, finish and closing fields, usage."""
    exchange = work.exchange
    for choice in work.choices:
        yield chunk(exchange, choice.index, echoes[choice.index], extra=opening)
        opening = {}
    offsets = [len(echo) for echo in echoes]
    running = len(work.choices)
    separate = asked.stream_options.include_usage
    with work.remembered():
        async with aclosing(events(work.choices)) as news:
            async for event in news:
                running -= event.finish is not None
                closing = {} if running else work.complete(usage=not separate)
                yield event_chunk(exchange, asked, event, offsets, closing)
    if separate:
        usage = exchange.usage.body()
        yield {**envelope(exchange, "text_completion"), "choices": [], "usage": usage}


def event_chunk(
    exchange: Exchange,
    asked: CompletionRequest,
    event: Event,
    offsets: list[int],
    closing: Mapping[str, Any],
) -> dict[str, Any]:
    """The chunk of one piece of news."""
    index = event.choice.index
    text, tokens = _written(event)
    wanted = asked.logprobs is not None and tokens
    logprobs = completion_logprobs(tokens, offsets[index]) if wanted else None
    offsets[index] += len(text)
    extra = {"progress": progress_body(event.progress)} if event.progress else {}
    return chunk(
        exchange, index, text, logprobs=logprobs, finish=event.finish, extra={**extra, **closing}
    )


def _written(event: Event) -> tuple[str, list[Token]]:
    """All text of the news, whichever channel a stage moved it to, with its tokens."""
    text = "".join(delta.text for delta in event.deltas)
    return text, [token for delta in event.deltas for token in delta.tokens]


def chunk(
    exchange: Exchange,
    index: int,
    text: str,
    *,
    logprobs: Mapping[str, Any] | None = None,
    finish: str | None = None,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """One chunk with one choice."""
    choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}
    return {**envelope(exchange, "text_completion"), "choices": [choice], **extra}


async def whole(work: Work, asked: CompletionRequest, echoes: Sequence[str]) -> dict[str, Any]:
    """The answer as one body."""
    texts = list(echoes)
    tokens: list[list[Token]] = [[] for _ in work.choices]
    async with aclosing(events(work.choices)) as news:
        async for event in news:
            text, new = _written(event)
            texts[event.choice.index] += text
            tokens[event.choice.index] += new
    closing = work.complete()
    choices = [
        {
            "index": choice.index,
            "text": texts[choice.index],
            "logprobs": completion_logprobs(tokens[choice.index], len(echoes[choice.index]))
            if asked.logprobs is not None
            else None,
            "finish_reason": choice.finish,
        }
        for choice in work.choices
    ]
    return {**envelope(work.exchange, "text_completion"), "choices": choices, **closing}
