#!/bin/sh
# A question, and a second one streamed, with curl.
set -eu
url="${OPENAI_BASE_URL:-http://127.0.0.1:1234/v1}/chat/completions"

ask() {
    curl --fail-with-body --silent --show-error --no-buffer "$url" \
        -H "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
        -H 'Content-Type: application/json' \
        -d "$1"
    echo
}

ask '{"messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 100}'
ask '{"messages": [{"role": "user", "content": "Count to five."}], "max_tokens": 50, "stream": true}'
