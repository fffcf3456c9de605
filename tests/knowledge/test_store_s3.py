"""The store in a bucket of a server that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import numpy as np
import pytest
from moto.server import ThreadedMotoServer

from hookline import StartError
from hookline_knowledge.chunks import Chunk
from hookline_knowledge.store import Query, Store

KEYS = {"access_key_id": "testing", "secret_access_key": "testing", "region": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client: Any = boto3.client(
        "s3",
        endpoint_url=url,
        region_name=KEYS["region"],
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
    )
    client.create_bucket(Bucket="collections")
    yield url
    client.close()
    server.stop()


def options(endpoint: str) -> dict[str, str]:
    return {**KEYS, "endpoint": endpoint, "allow_http": "true"}


async def test_documents_live_in_a_bucket(endpoint: str) -> None:
    vectors = np.eye(4).tolist()
    one = Store("s3://collections/here", options(endpoint))
    await one.open()
    for number, text in enumerate(["red barn", "blue ship"]):
        await one.add("m", 1, number, [Chunk(text, "", 0, 0, len(text))], [vectors[number]])
    (best, *_) = await one.search(Query("ship", vectors[1], "m", [1]))
    assert (best.document, best.text) == (1, "blue ship")
    await one.delete([1])
    await one.close()

    other = Store("s3://collections/here", options(endpoint))
    await other.open()
    assert await other.count() == 1
    assert [hit.document for hit in await other.search(Query("ship", vectors[1], "m"))] == [0]
    await other.close()


async def test_a_missing_bucket_is_told(endpoint: str) -> None:
    store = Store("s3://no-such-bucket/here", options(endpoint))
    with pytest.raises(StartError, match=r"s3://no-such-bucket/here cannot be opened"):
        await store.open()
    await store.close()
