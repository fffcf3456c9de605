"""LanceDB, imported so that the server can go on starting processes."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hookline_knowledge.store.memory import keep_few_heaps

_IMPORTING = threading.Lock()  # what is changed meanwhile belongs to the process


def lancedb() -> ModuleType:
    """The library. Slow at first: to be called in a thread.

    It wants to start a thread in every forked child. uvloop runs such wishes in each process that
    it starts, before the new program begins: there they can hang, and with them the server. As
    nothing here forks and goes on as Python, they are left out.
    """
    keep_few_heaps()
    with _IMPORTING:
        os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")  # else it warns of itself
        register: Any = os.register_at_fork

        def register_others(**handlers: Callable[[], object]) -> None:
            if not any(handler.__module__.startswith("lancedb") for handler in handlers.values()):
                register(**handlers)

        setattr(os, "register_at_fork", register_others)  # noqa: B010 mypy knows its signature
        try:
            return importlib.import_module("lancedb")
        finally:
            setattr(os, "register_at_fork", register)  # noqa: B010
