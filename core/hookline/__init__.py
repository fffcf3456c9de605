"""Hookline: a plugin-based microkernel server for local language models.

Everything a plugin may import is here.
"""

from hookline.constraints import ConstraintSpec
from hookline.documents import Document, Section
from hookline.engine import (
    Card,
    Constraint,
    Decode,
    Engine,
    EngineState,
    EngineStats,
    Generation,
    Grammar,
    Job,
    Piece,
    Prefill,
    Queued,
    Sampling,
    Timings,
    Token,
    TopLogprob,
    Vocabulary,
)
from hookline.errors import (
    ApiError,
    ConfigError,
    ContextLengthExceeded,
    EngineUnavailable,
    Forbidden,
    InvalidApiKey,
    InvalidRequest,
    MissingExtra,
    NotFound,
    PluginError,
    QuotaExhausted,
    RequestTooLarge,
    StartError,
    Unavailable,
    UnsupportedMedia,
)
from hookline.exchange import Caller, Exchange, Usage
from hookline.hookspecs import API_VERSION, hookimpl, hookspec
from hookline.images import Image
from hookline.messages import (
    ImagePart,
    ImageUrl,
    Message,
    TextPart,
    ToolCall,
    split_after_question,
    with_system_text,
    with_user_text,
)
from hookline.room import staying_tokens
from hookline.server import Embedder, Server
from hookline.sources import in_line, quoted, sources_header
from hookline.stream import Delta, Held, Stage, ToolCallDelta, overlap
from hookline.turns import Turn, Turns, turn_of

__version__ = "0.1.0"

__all__ = [
    "API_VERSION",
    "ApiError",
    "Caller",
    "Card",
    "ConfigError",
    "Constraint",
    "ConstraintSpec",
    "ContextLengthExceeded",
    "Decode",
    "Delta",
    "Document",
    "Embedder",
    "Engine",
    "EngineState",
    "EngineStats",
    "EngineUnavailable",
    "Exchange",
    "Forbidden",
    "Generation",
    "Grammar",
    "Held",
    "Image",
    "ImagePart",
    "ImageUrl",
    "InvalidApiKey",
    "InvalidRequest",
    "Job",
    "Message",
    "MissingExtra",
    "NotFound",
    "Piece",
    "PluginError",
    "Prefill",
    "Queued",
    "QuotaExhausted",
    "RequestTooLarge",
    "Sampling",
    "Section",
    "Server",
    "Stage",
    "StartError",
    "TextPart",
    "Timings",
    "Token",
    "ToolCall",
    "ToolCallDelta",
    "TopLogprob",
    "Turn",
    "Turns",
    "Unavailable",
    "UnsupportedMedia",
    "Usage",
    "Vocabulary",
    "hookimpl",
    "hookspec",
    "in_line",
    "overlap",
    "quoted",
    "sources_header",
    "split_after_question",
    "staying_tokens",
    "turn_of",
    "with_system_text",
    "with_user_text",
]
