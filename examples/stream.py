"""An answer as it is written, with OpenAI's Python SDK."""

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)

stream = client.chat.completions.create(
    model="default",
    messages=[{"role": "user", "content": "Name three rivers, and say where they are."}],
    max_tokens=100,
    stream=True,
    stream_options={"include_usage": True},
)

for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    elif chunk.usage:  # the last chunk, which has no choices
        print(f"\n({chunk.usage.completion_tokens} tokens)")
