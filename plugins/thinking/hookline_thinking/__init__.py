"""Thinks before it answers: the thought on a channel of its own, and no longer than asked."""

from hookline_thinking.plugin import Thinking
from hookline_thinking.settings import ThinkingFields, ThinkingSettings

__all__ = ["Thinking", "ThinkingFields", "ThinkingSettings"]
