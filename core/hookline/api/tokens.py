"""``/v1/tokenize`` and ``/v1/detokenize``."""

from __future__ import annotations

import asyncio
from functools import partial

from quart import Blueprint, Response, g

from hookline.api.bodies import Text, Tokens
from hookline.api.completions import check_ids
from hookline.api.describe import describe
from hookline.api.http import json_response, read_json
from hookline.api.schema import ChatRequest, DetokenizeRequest, TokenizeRequest
from hookline.api.validation import validate
from hookline.errors import InvalidRequest
from hookline.kernel import Kernel
from hookline.prompt import Prompt


def blueprint(kernel: Kernel) -> Blueprint:
    """The routes."""
    routes = Blueprint("tokens", __name__)

    @routes.post("/v1/tokenize")
    @describe(request=TokenizeRequest, response=Tokens)
    async def tokenized() -> Response:
        """Text, or messages under the chat template, as token ids."""
        asked = validate(TokenizeRequest, await read_json())
        if asked.messages is not None:
            prompt = await _chat_prompt(kernel, asked)
        else:
            tokenize = partial(kernel.engine.tokenize, special=asked.special)
            ids = await asyncio.to_thread(tokenize, asked.text or "")
            prompt = Prompt(ids, dropped=0)
        return json_response(
            {
                "ids": prompt.ids,
                "count": len(prompt.ids),
                "max_ctx": kernel.engine.card.context,
                "dropped_messages": prompt.dropped,
            }
        )

    @routes.post("/v1/detokenize")
    @describe(request=DetokenizeRequest, response=Text)
    async def detokenize() -> Response:
        """Token ids as text."""
        asked = validate(DetokenizeRequest, await read_json())
        ids = check_ids(kernel.engine, asked.ids, "ids")
        text = await asyncio.to_thread(kernel.engine.detokenize, ids)
        return json_response({"text": text})

    return routes


async def _chat_prompt(kernel: Kernel, asked: TokenizeRequest) -> Prompt:
    """The prompt that a chat request with these messages would begin with."""
    messages = list(asked.messages or ())
    exchange = kernel.exchange(ChatRequest.model_construct(messages=messages), g.caller, messages)
    for place, message in enumerate(messages):
        if message.images:
            raise InvalidRequest(
                f"messages[{place}] holds an image, and only text is tokenized here. Leave it out; "
                "the usage of a chat request counts it.",
                param=f"messages[{place}].content",
            )
    return await kernel.prompt(exchange, {})
