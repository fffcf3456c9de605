"""The kit for testing plugins: a whole server in a test, with a model that says what it is told.

pytest finds the fixtures ``server``, ``chat``, ``stream``, ``clock``, ``allowance``,
``only_plugins`` and ``tmp_plugin`` by itself; `PluginContractTests` is to be inherited.
"""

from hookline.engines.scripted import Break, Pause, say
from hookline.testing.answers import Answer, Refused, StreamedAnswer
from hookline.testing.clock import TestClock
from hookline.testing.contract import PluginContractTests
from hookline.testing.server import LocalServer
from hookline.testing.shapes import WrongShape, check_answer, check_chunks, check_error

__all__ = [
    "Answer",
    "Break",
    "LocalServer",
    "Pause",
    "PluginContractTests",
    "Refused",
    "StreamedAnswer",
    "TestClock",
    "WrongShape",
    "check_answer",
    "check_chunks",
    "check_error",
    "say",
]
