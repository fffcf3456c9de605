"""What was made of images lately: a conversation brings its images again with every turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Least recently used goes first. ``most`` bounds the sizes of all values together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sum = 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """The value, if it is still there."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keeps a value; one that is larger than the whole cache is not kept."""
        if key in self._values or size > self._most:
            return
        self._values[key] = (value, size)
        self._sum += size
        while self._sum > self._most:
            _, (_, freed) = self._values.popitem(last=False)
            self._sum -= freed
