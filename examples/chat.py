"""A question and its answer, with OpenAI's Python SDK.

Extra fields of the answer, such as ``timings``, arrive in ``model_extra``.
"""

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)

answer = client.chat.completions.create(
    model="default",  # whichever is loaded answers
    messages=[
        {"role": "system", "content": "You answer in one short sentence."},
        {"role": "user", "content": "Why is the sky blue?"},
    ],
    max_tokens=100,
)

print(answer.choices[0].message.content)
timings = (answer.model_extra or {})["timings"]
print(f"({answer.model}, {timings['predicted_per_second']:.1f} tokens a second)")
