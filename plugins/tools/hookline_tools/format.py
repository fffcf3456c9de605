"""How a model writes tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hookline_tools.arguments import ArgumentStyle, JsonArguments


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """The texts around the calls of an answer.

    An answer with calls is: free text, ``open``, and for each call ``before_name``, the name,
    ``after_name``, the arguments and ``end``, with ``separator`` between calls, then ``close``.

    ``marks``: a model writes this way when its chat template has them all. ``trigger`` is the
    beginning of the first call from which on nothing else can come; ``anywhere`` False: only at the
    very beginning of an answer. ``parallel``: whether an answer can have several calls. ``native``
    False: the chat template knows nothing of tools, and the model is told in the system message.
    ``id_length``: the template insists on letters and digits of this length as ids of calls.
    """

    name: str
    marks: tuple[str, ...]
    trigger: str
    before_name: str
    after_name: str
    end: str
    open: str = ""
    separator: str = ""
    close: str = ""
    anywhere: bool = True
    parallel: bool = True
    native: bool = True
    id_length: int | None = None
    arguments: ArgumentStyle = JsonArguments()  # noqa: RUF009 - it has no state

    def __post_init__(self) -> None:
        if not self.trigger or not (self.open + self.before_name).startswith(self.trigger):
            raise ValueError(f"the tool format '{self.name}' does not begin with its trigger")

    def suits(self, template: str) -> bool:
        """Whether models with this chat template write calls this way."""
        return bool(self.marks) and all(mark in template for mark in self.marks)

    def standing_alone(self) -> ToolFormat:
        """This format for answers that are calls and nothing else, or text of another form.

        Calls then stand at the very beginning, and all that comes before the name tells them apart.
        """
        return replace(self, trigger=self.open + self.before_name, anywhere=False)

    def constraint(
        self,
        schemas: Mapping[str, Mapping[str, Any]],
        *,
        required: bool,
        parallel: bool,
        otherwise: Any = None,
    ) -> dict[str, Any]:
        """The value of a tagged `hookline.ConstraintSpec` for calls of these functions.

        ``otherwise`` is what it says there of text that may come instead; None: any text.
        Raises ValueError for a schema that cannot be written in this format.
        """
        call = {
            "any": [
                [f"{name}{self.after_name}", self.arguments.tree(schema)]
                for name, schema in schemas.items()
            ]
        }
        begin = self.open + self.before_name
        more = [self.separator + self.before_name, call, self.end]
        rest = [{"repeat": more}] if parallel and self.parallel else []
        if required:
            return {"then": [begin, call, self.end, *rest, self.close]}
        begin = begin.removeprefix(self.trigger)
        return {
            "triggers": [self.trigger],
            "anywhere": self.anywhere,
            "then": [begin, call, self.end, *rest, self.close],
            "otherwise": otherwise,
        }

    def write(self, calls: list[tuple[str, str]]) -> str:
        """Calls as the model writes them; each is a name and its arguments as JSON."""
        written = [
            f"{self.before_name}{name}{self.after_name}{arguments}{self.end}"
            for name, arguments in calls
        ]
        return f"{self.open}{self.separator.join(written)}{self.close}"
