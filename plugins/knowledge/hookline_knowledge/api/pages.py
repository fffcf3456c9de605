"""Pages of lists, as routes give them."""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Connection
from typing import Concatenate, ParamSpec, TypeVar

from hookline import InvalidRequest
from hookline_knowledge.catalog import Cursor, Database, Page

Item = TypeVar("Item")
P = ParamSpec("P")


async def page_of(
    catalog: Database,
    work: Callable[Concatenate[Connection, Cursor, P], Page[Item]],
    cursor: Cursor,
    *args: P.args,
    **named: P.kwargs,
) -> Page[Item]:
    """A page of a list. Raises InvalidRequest for a cursor that is not in it."""
    try:
        return await catalog.read(work, cursor, *args, **named)
    except KeyError as error:
        param = "after" if cursor.after == error.args[0] else "before"
        raise InvalidRequest(
            f"'{param}': there is no '{str(error.args[0])[:100]}' in this list.", param=param
        ) from None
