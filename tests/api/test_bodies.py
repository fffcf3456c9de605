"""Bodies, paths and methods that are wrong: a 4xx as JSON, and the next request is answered."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

CHAT = "/v1/chat/completions"
JSON = {"Content-Type": "application/json"}
GOOD = b'{"messages":[{"role":"user","content":"hi"}]}'
POST_ROUTES = (CHAT, "/v1/completions", "/v1/tokenize", "/v1/detokenize")

BROKEN: dict[str, bytes] = {
    "empty": b"",
    "blank": b"  \n",
    "not JSON": b"hello",
    "cut off": GOOD[:-5],
    "more after it": GOOD + b"{}",
    "a list": b"[]",
    "a string": b'"x"',
    "a number": b"5",
    "null": b"null",
    "invalid UTF-8": b'{"messages":[{"role":"user","content":"\xff\xfe"}]}',
    "half a character": b'{"messages":[{"role":"user","content":"\xf0\x9f"}]}',
    "a raw NUL": b'{"messages":[{"role":"user","content":"a\x00b"}]}',
    "a lone surrogate": b'{"messages":[{"role":"user","content":"\\ud800"}]}',
    "a lone surrogate as key": b'{"\\udfff":1,"messages":[{"role":"user","content":"x"}]}',
    "NaN": b'{"temperature":NaN,"messages":[{"role":"user","content":"x"}]}',
    "Infinity": b'{"temperature":-Infinity,"messages":[{"role":"user","content":"x"}]}',
    "a number of 5000 digits": b'{"seed":' + b"9" * 5000 + b"}",
    "deep lists": b"[" * 100_000,
    "deep lists, closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "UTF-16": GOOD.decode().encode("utf-16"),
}


def check_error(answer: Any, status: int, code: str | None, case: object = "") -> dict[str, Any]:
    """The answer is OpenAI's error body and nothing else."""
    assert answer.status_code == status, (case, answer.text[:300])
    assert answer.headers["content-type"] == "application/json", case
    body = answer.json()
    assert set(body) == {"error"}, case
    assert set(body["error"]) == {"message", "type", "param", "code"}, case
    assert body["error"]["message"], case
    assert "Traceback" not in answer.text, case
    assert body["error"]["code"] == code, case
    error: dict[str, Any] = body["error"]
    return error


async def test_broken_bodies(on_port: Any) -> None:
    async with on_port() as server:
        for route in POST_ROUTES:
            for case, body in BROKEN.items():
                answer = await server.client.post(route, content=body, headers=JSON)
                check_error(answer, 400, "invalid_json", (route, case))
        assert (await server.chat()).status_code == 200


async def test_escaped_nul_and_strange_characters_are_text(in_process: Any, listener: Any) -> None:
    text = "a\x00b\ufdd0\uffff\u202e\U0001f600"
    async with in_process(script=listener) as server:
        assert (await server.chat(text)).status_code == 200
    assert "a\x00b\ufffd\uffff\u202e\U0001f600" in listener.prompts[0]


async def test_the_last_of_equal_keys_counts(in_process: Any, listener: Any) -> None:
    body = b'{"max_tokens":0,"messages":[{"role":"user","content":"x"}],"max_tokens":2}'
    async with in_process(script=listener) as server:
        answer = await server.client.post(CHAT, content=body, headers=JSON)
    assert answer.status_code == 200
    assert listener.jobs[0].max_tokens == 2


async def test_deep_values_that_can_be_read(in_process: Any) -> None:
    deep: Any = 1
    for _ in range(150):
        deep = {"a": [deep]} if isinstance(deep, int) else {"a": deep}
    async with in_process() as server:
        for fields in ({"chat_template_kwargs": deep}, {"unknown": deep}, {"stop": deep}):
            assert (await server.chat(**fields)).status_code in (200, 400)
        call = {"id": "1", "function": {"name": "f", "arguments": deep}}
        messages = [{"role": "assistant", "tool_calls": [call]}]
        answer = await server.client.post(CHAT, json={"messages": messages})
        assert answer.status_code == 200


async def test_wrong_content_types(in_process: Any) -> None:
    async with in_process() as server:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await server.client.post(CHAT, content=GOOD, headers={"Content-Type": kind})
            check_error(answer, 415, "unsupported_media_type", kind)
        kind = "application/json; charset=utf-8"
        answer = await server.client.post(CHAT, content=GOOD, headers={"Content-Type": kind})
        assert answer.status_code == 200


async def test_encoded_bodies(in_process: Any) -> None:
    headers = {**JSON, "Content-Encoding": "gzip"}
    async with in_process() as server:
        answer = await server.client.post(CHAT, content=gzip.compress(GOOD), headers=headers)
        check_error(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("announced", [True, False])
async def test_bodies_over_the_limit(on_port: Any, announced: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(70):
            yield b" " * 2**20

    body = b" " * (70 * 2**20) if announced else pieces()
    async with on_port() as server:
        answer = await server.client.post(CHAT, content=body, headers=JSON)
        check_error(answer, 413, "request_too_large")
        assert (await server.chat()).status_code == 200


async def test_refusals_reach_clients_that_still_send(on_port: Any) -> None:
    body = b'"' + b"x" * (20 * 2**20) + b'"'
    async with on_port(settings={"auth": {"require_api_key": True}}) as server:
        answer = await server.client.post(CHAT, content=body, headers=JSON)
        check_error(answer, 401, "invalid_api_key")
        answer = await server.client.post("/v1/nothing", content=body, headers=JSON)
        check_error(answer, 401, "invalid_api_key")
    async with on_port() as server:
        answer = await server.client.post(CHAT, content=body, headers={"Content-Type": "text/csv"})
        check_error(answer, 415, "unsupported_media_type")


async def test_a_body_just_below_the_limit_is_read(in_process: Any, listener: Any) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "pad": ""})
    body = body.replace('"pad": ""', '"pad": "' + "x" * (1024 * 1024 - len(body)) + '"')
    async with in_process(script=listener, settings={"server": {"max_body_mb": 1}}) as server:
        assert len(body) == 1024 * 1024
        answer = await server.client.post(CHAT, content=body, headers=JSON)
        assert answer.status_code == 200
        answer = await server.client.post(CHAT, content=body + " ", headers=JSON)
        check_error(answer, 413, "request_too_large")


async def raw(url: str, data: bytes, *, then_close: bool = False) -> bytes:
    """What a server says to bytes that no HTTP library would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(data)
    if then_close:
        writer.write_eof()
    answer = await asyncio.wait_for(reader.read(65536), 20)
    writer.close()
    return answer


async def test_slow_bodies_end_in_time(on_port: Any) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    async with on_port(settings={"server": {"body_timeout": 0.2}}) as server:
        answer = await raw(server.url, head)
        assert (await server.chat()).status_code == 200
    assert answer.startswith(b"HTTP/1.1 408")
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert error["code"] == "request_timeout"


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 1000\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: two\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"Transfer-Encoding: gzip\r\n\r\n{}",
        b"Content-Length: 2\r\n\r\n{}GARBAGE\r\n\r\n",
        b"no colon\r\n\r\n",
    ],
)
async def test_lies_about_the_body_break_nobody(on_port: Any, data: bytes) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += b"Content-Type: application/json\r\n"
    async with on_port() as server:
        answer = await raw(server.url, head + data, then_close=True)
        assert answer == b"" or answer.split(b" ")[1].startswith((b"4", b"501")), answer[:100]
        assert (await server.chat()).status_code == 200


async def test_unknown_paths(on_port: Any) -> None:
    paths: tuple[str, ...] = (
        "/",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/chat/completions/",
        "/v1//models",
    )
    paths += ("/v1/models/", "/%ff%fe", "/%00", "/v1/..%2fhealth", "/" + "x" * 4000)
    async with on_port() as server:
        for path in paths:
            for method in ("GET", "POST", "DELETE"):
                answer = await server.client.request(method, server.url + path)
                check_error(answer, 404, "not_found", (method, path))


async def test_wrong_methods(on_port: Any) -> None:
    wrong = [("GET", route) for route in POST_ROUTES]
    wrong += [("PUT", CHAT), ("DELETE", CHAT), ("PATCH", CHAT), ("TRACE", CHAT), ("BREW", CHAT)]
    wrong += [("POST", "/v1/models"), ("POST", "/health"), ("DELETE", "/v1/models/a/b")]
    async with on_port() as server:
        for method, path in wrong:
            answer = await server.client.request(method, path)
            check_error(answer, 405, "method_not_allowed", (method, path))
            assert answer.headers["allow"]


async def test_head_and_options(on_port: Any) -> None:
    async with on_port() as server:
        for path, status in (("/v1/models", 200), ("/health", 200), (CHAT, 405), ("/no", 404)):
            answer = await server.client.head(path)
            assert (answer.status_code, answer.content) == (status, b""), path
        answer = await server.client.options(CHAT)
        assert answer.status_code == 200
        assert "POST" in answer.headers["allow"]
        assert (await server.chat()).status_code == 200


async def test_query_strings_are_ignored(in_process: Any) -> None:
    async with in_process() as server:
        answer = await server.client.post(f"{CHAT}?api-version=1&x=%ff", content=GOOD, headers=JSON)
        assert answer.status_code == 200
