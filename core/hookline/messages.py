"""A conversation: messages, their parts, and the tool calls in them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from hookline.images import Image

Role = Literal["system", "developer", "user", "assistant", "tool"]

IMAGES_MAX = 16
"""Images that one request may carry."""


def without_nulls(data: Any) -> Any:
    """A JSON object without the keys that are ``null``, which means absent."""
    if isinstance(data, Mapping):
        return {key: value for key, value in data.items() if value is not None}
    return data


def field_error(field: str, reason: str) -> PydanticCustomError:
    """What a validator of a whole model raises where one of its fields is wrong."""
    return PydanticCustomError("field_error", "{reason}", {"param": field, "reason": reason})


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return without_nulls(data)


class TextPart(_Lenient):
    """A piece of text inside a message."""

    type: Literal["text"] = "text"
    text: str


class ImageUrl(_Lenient):
    """Where an image is: a base64 ``data:`` URL."""

    url: str
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(_Lenient):
    """An image inside a message."""

    type: Literal["image_url"] = "image_url"
    image_url: ImageUrl
    _pixels: Image | None = PrivateAttr(None)

    @property
    def pixels(self) -> Image | None:
        """What the engine looks at, once a plugin has decoded the image; no client can set it."""
        return self._pixels

    def decoded(self, pixels: Image) -> "ImagePart":
        """A copy with its pixels."""
        copy = self.model_copy()
        copy._pixels = pixels
        return copy


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class FunctionCall(_Lenient):
    """Which function the assistant called, with its arguments as JSON text."""

    name: str
    arguments: str | dict[str, JsonValue] = "{}"


class ToolCall(_Lenient):
    """One call the assistant made."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(_Lenient):
    """One turn of a conversation.

    ``content`` is text, a list of parts, or nothing where the role allows it (an assistant that
    only called tools). ``reasoning_content`` is a thought of an earlier answer.
    """

    role: Role
    content: str | list[Part] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None

    @model_validator(mode="after")
    def _content_where_needed(self) -> "Message":
        if self.content is None and self.role in ("system", "developer", "user"):
            raise field_error("content", f"a message of role '{self.role}' needs content")
        return self

    @property
    def text(self) -> str:
        """All text of the message, parts joined without a separator."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> list[ImagePart]:
        """The image parts of the message, in order."""
        if not isinstance(self.content, list):
            return []
        return [part for part in self.content if isinstance(part, ImagePart)]

    def for_template(self) -> dict[str, Any]:
        """The message as chat templates expect it: text content, absent keys left out.

        ``developer`` becomes ``system``; templates know only the latter.
        """
        data = self.model_dump(exclude_none=True)
        data["role"] = "system" if self.role == "developer" else self.role
        data["content"] = self.text
        return data


def with_user_text(messages: Sequence[Message], text: str) -> list[Message]:
    """The conversation with ``text`` at the end of its last user message, images kept; as it is
    where nobody has asked anything. The messages that come in stay as they are.
    """
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            changed = _extended(messages[place], text)
            return [*messages[:place], changed, *messages[place + 1 :]]
    return list(messages)


def split_after_question(
    messages: Sequence[Message], question: str
) -> tuple[list[Message], list[Message]]:
    """The conversation as far as the user message that begins with ``question``, the last one that
    was sent, and what follows; all of it and nothing where there is none.

    Where the model's template knows no tools, another plugin writes their results as words of the
    user: then the last user message is not the question any more.
    """
    for place in range(len(messages), 0, -1):
        message = messages[place - 1]
        if message.role == "user" and message.text.startswith(question):
            return list(messages[:place]), list(messages[place:])
    return list(messages), []


def with_system_text(messages: Sequence[Message], text: str) -> list[Message]:
    """The conversation with ``text`` at the end of its first system message, or as one before all
    others where it does not begin with one. The messages that come in stay as they are.
    """
    if not messages or messages[0].role not in ("system", "developer"):
        return [Message(role="system", content=text), *messages]
    return [_extended(messages[0], text), *messages[1:]]


def _extended(message: Message, text: str) -> Message:
    if isinstance(message.content, list):
        content: str | list[Part] = [*message.content, TextPart(text=f"\n\n{text}")]
    else:
        content = f"{message.text}\n\n{text}" if message.text else text
    return message.model_copy(update={"content": content})
