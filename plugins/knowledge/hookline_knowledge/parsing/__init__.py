"""Files as documents: each kind's reader, and the processes in which they run."""

from hookline_knowledge.parsing.parser import Parser
from hookline_knowledge.parsing.settings import ParsingSettings
from hookline_knowledge.parsing.unreadable import Unreadable

__all__ = ["Parser", "ParsingSettings", "Unreadable"]
