"""``POST /v1/chat/completions``: one request, top to bottom."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from quart import Blueprint, Response, g

from hookline.api.answers import (
    Written,
    chat_logprobs,
    delta_body,
    envelope,
    is_content,
    progress_body,
    report_body,
)
from hookline.api.bodies import ChatCompletion
from hookline.api.choices import Event, copies, events
from hookline.api.describe import describe
from hookline.api.http import json_response, read_json
from hookline.api.preparation import Preparation
from hookline.api.promises import refuse_broken, refuse_images, refuse_unkept
from hookline.api.schema import ChatRequest
from hookline.api.sse import event_stream
from hookline.api.validation import validate
from hookline.api.work import Work
from hookline.engine import Job
from hookline.exchange import Exchange
from hookline.kernel import Kernel


def blueprint(kernel: Kernel) -> Blueprint:
    """The route."""
    routes = Blueprint("chat", __name__)

    @routes.post("/v1/chat/completions")
    @describe(request=kernel.chat_request, response=ChatCompletion, streams=True, generates=True)
    async def chat_completions() -> Response:
        """Answers a conversation."""
        chat = validate(kernel.chat_request, await read_json())
        refuse_unkept(chat.model_extra or {})
        kernel.refuse_other_model(chat.model)
        kernel.report_ignored(list(chat.model_extra or ()))
        work = Work.begin(kernel, kernel.exchange(chat, g.caller, list(chat.messages)))
        with work.remembered():
            return await (streamed(work, chat) if chat.stream else answered(work, chat))

    return routes


async def answered(work: Work, chat: ChatRequest) -> Response:
    """The answer in one piece."""
    plugins, exchange = work.kernel.plugins, work.exchange
    await prepare(work, chat)
    opening, headers = plugins.opening_fields(exchange), plugins.response_headers(exchange)
    response = json_response({**opening, **await whole(work, chat)})
    response.headers.update(headers)
    return response


async def streamed(work: Work, chat: ChatRequest) -> Response:
    """The answer as a stream: it begins when the jobs are queued, or with the first report."""
    preparation = Preparation(work.exchange, prepare(work, chat))
    work.stack.push_async_callback(preparation.cancel)
    if await preparation.done_in_silence():
        stream = chunks(work, chat, work.kernel.plugins.opening_fields(work.exchange))
    else:
        stream = chunks_with_reports(work, chat, preparation)
    response = event_stream(stream)
    response.headers.update(work.kernel.plugins.response_headers(work.exchange))
    return response


async def prepare(work: Work, chat: ChatRequest) -> None:
    """From the body to jobs in the queue; every refusal happens in here."""
    kernel, exchange = work.kernel, work.exchange
    refuse_broken(kernel.plugins.found.values(), exchange)
    await kernel.plugins.admit(exchange)
    await kernel.plugins.transform(exchange)
    refuse_images(exchange)
    prompt = await kernel.prompt(exchange, chat.chat_template_kwargs)
    exchange.dropped_messages = prompt.dropped
    job = Job(
        prompt.ids,
        max_tokens=chat.limit,
        sampling=kernel.sampling(chat),
        logprobs=chat.logprobs_wanted,
        images=prompt.images,
    )
    await kernel.plugins.shape_job(exchange, job)
    await work.submit(copies(job, chat.n), chat.stops)


async def chunks_with_reports(
    work: Work, chat: ChatRequest, preparation: Preparation
) -> AsyncGenerator[dict[str, Any], None]:
    """What the plugins report while they prepare the answer, and then the answer."""
    exchange = work.exchange
    with work.remembered():
        async with aclosing(preparation.reports()) as reports:
            async for report in reports:
                yield chunk(exchange, 0, {}, extra={"progress": report_body(report)})
    opening = work.kernel.plugins.opening_fields(exchange)
    async with aclosing(chunks(work, chat, opening)) as answer:
        async for data in answer:
            yield data


async def chunks(
    work: Work, chat: ChatRequest, opening: Mapping[str, Any]
) -> AsyncGenerator[dict[str, Any], None]:
    """The answer as chunks: role and opening fields, deltas, finish and closing fields, usage."""
    exchange = work.exchange
    for choice in work.choices:
        yield chunk(exchange, choice.index, {"role": "assistant", "content": ""}, extra=opening)
        opening = {}
    running = len(work.choices)
    separate = chat.stream_options.include_usage
    with work.remembered():
        async with aclosing(events(work.choices)) as news:
            async for event in news:
                running -= event.finish is not None
                closing = {} if running else work.complete(usage=not separate)
                for data in event_chunks(exchange, chat, event, closing):
                    yield data
    if separate:
        usage = exchange.usage.body()
        yield {**envelope(exchange, "chat.completion.chunk"), "choices": [], "usage": usage}


def event_chunks(
    exchange: Exchange, chat: ChatRequest, event: Event, closing: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The chunks of one piece of news; ``closing`` joins the last one."""
    index = event.choice.index
    extra = {"progress": progress_body(event.progress)} if event.progress else {}
    data = []
    for delta in event.deltas:
        body = delta_body(delta)
        logprobs = chat_logprobs(delta.tokens) if chat.logprobs and is_content(delta) else None
        if body or (logprobs and logprobs["content"]):
            data.append(chunk(exchange, index, body, logprobs=logprobs, extra=extra))
    if event.finish is not None:
        data.append(chunk(exchange, index, {}, finish=event.finish, extra=closing))
    elif not data and extra:
        data.append(chunk(exchange, index, {}, extra=extra))
    return data


def chunk(
    exchange: Exchange,
    index: int,
    delta: Mapping[str, Any],
    *,
    logprobs: Mapping[str, Any] | None = None,
    finish: str | None = None,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """One chunk with one choice."""
    choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
    return {**envelope(exchange, "chat.completion.chunk"), "choices": [choice], **extra}


async def whole(work: Work, chat: ChatRequest) -> dict[str, Any]:
    """The answer as one body."""
    written = [Written() for _ in work.choices]
    async with aclosing(events(work.choices)) as news:
        async for event in news:
            for delta in event.deltas:
                written[event.choice.index].add(delta)
    closing = work.complete()
    choices = [
        {
            "index": choice.index,
            "message": written[choice.index].message(),
            "logprobs": chat_logprobs(written[choice.index].tokens) if chat.logprobs else None,
            "finish_reason": choice.finish,
        }
        for choice in work.choices
    ]
    return {**envelope(work.exchange, "chat.completion"), "choices": choices, **closing}
