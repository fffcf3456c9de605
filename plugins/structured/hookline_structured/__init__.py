"""Structured output for Hookline: answers that follow a schema, a pattern or a grammar."""

from hookline_structured.plugin import Structured
from hookline_structured.settings import StructuredSettings

__all__ = ["Structured", "StructuredSettings"]
