"""What plugins with HTTP routes may import besides `hookline`."""

from hookline.api.access import accepts
from hookline.api.describe import describe
from hookline.api.http import json_response, read_json
from hookline.api.pacing import paced_body
from hookline.api.request_scope import request_stack
from hookline.api.validation import validate

__all__ = [
    "accepts",
    "describe",
    "json_response",
    "paced_body",
    "read_json",
    "request_stack",
    "validate",
]
