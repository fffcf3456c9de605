"""What can be set."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, SecretStr


class UpstreamSettings(BaseModel):
    """``[plugin.upstream]``"""

    model_config = ConfigDict(extra="forbid")

    url: HttpUrl = Field(
        HttpUrl("http://127.0.0.1:8000"), description="Where it is, without /v1 at the end."
    )
    api_key: SecretStr | None = Field(None, description="Its key.")
    kind: Literal["auto", "llama-server", "vllm", "hookline"] = Field(
        "auto", description="What it is; by default it is asked."
    )
    retries: int = Field(3, ge=0, le=10, description="How often a request that failed is repeated.")
    max_queue: int = Field(64, ge=0, description="Requests that may wait for a place.")
    timeout_seconds: float = Field(
        60, gt=0, description="How long it may be silent before it is given up."
    )
