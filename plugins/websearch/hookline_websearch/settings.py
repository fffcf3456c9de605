"""What can be set and asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from hookline_websearch.reading_settings import ReadingSettings

Depth = Literal["quick", "balanced", "deep"]


class DepthSettings(BaseModel):
    """How far one depth of search goes."""

    model_config = ConfigDict(extra="forbid")

    queries: int = Field(ge=1, le=8, description="Most queries at once.")
    pages: int = Field(ge=0, le=30, description="Most pages to read.")
    seconds: float = Field(
        gt=0, le=120, description="Most seconds for searching and reading, without the model's own."
    )
    tokens: int = Field(ge=100, le=100_000, description="Most tokens of passages for the model.")
    rounds: int = Field(
        1,
        ge=1,
        le=3,
        description="Searches one after the other; later ones follow what was read.",
    )


LIMITS: Mapping[str, Mapping[str, float]] = {
    "quick": {"queries": 1, "pages": 3, "seconds": 1.5, "tokens": 1200},
    "balanced": {"queries": 3, "pages": 6, "seconds": 4, "tokens": 2400},
    "deep": {"queries": 4, "pages": 12, "seconds": 20, "tokens": 4800, "rounds": 2},
}
"""The limits of each depth, as far as the settings do not say others."""


class WebSearchSettings(ReadingSettings):
    """``[plugin.websearch]``"""

    model_config = ConfigDict(extra="forbid")

    depth: Depth = Field(
        "balanced", description='What `"web_search": true` means: quick, balanced or deep.'
    )
    quick: DepthSettings = Field(
        DepthSettings.model_validate(LIMITS["quick"]),
        description="Limits of quick searches.",
    )
    balanced: DepthSettings = Field(
        DepthSettings.model_validate(LIMITS["balanced"]),
        description="Limits of balanced searches.",
    )
    deep: DepthSettings = Field(
        DepthSettings.model_validate(LIMITS["deep"]),
        description="Limits of deep searches.",
    )
    plan: bool = Field(
        True,
        description="Let the model decide whether to search, and for what. Off: the last message "
        "is always searched for.",
    )
    providers: list[str] = Field(
        ["searxng"], min_length=1, description="Who is asked for addresses, all at once."
    )
    searxng_url: HttpUrl = Field(
        HttpUrl("http://127.0.0.1:8888"), description="Where SearXNG answers."
    )
    searxng_command: str | None = Field(
        None,
        description="A command that starts SearXNG; it runs as long as the server. "
        "`hookline websearch setup` says one.",
    )
    mediawiki_url: HttpUrl = Field(
        HttpUrl("https://en.wikipedia.org/w/api.php"),
        description="api.php of the wiki that the provider 'mediawiki' asks.",
    )
    language: str = Field(
        "auto",
        pattern=r"^(auto|all|[a-z]{2,3}(-[A-Za-z]{2,4})?)$",
        description="Language of results, such as 'de'; 'auto' follows the query.",
    )
    per_site: int = Field(2, ge=1, le=30, description="Most pages of one site.")
    answer_tokens: int = Field(
        1024, ge=16, description="Tokens of the context that passages leave for the answer."
    )

    @field_validator("quick", "balanced", "deep", mode="before")
    @classmethod
    def _others_stay(cls, value: Any, info: ValidationInfo) -> Any:
        """A table may say some of the limits only."""
        if isinstance(value, Mapping) and info.field_name is not None:
            return {**LIMITS[info.field_name], **value}
        return value

    def limits(self, depth: Depth) -> DepthSettings:
        """The limits of one depth."""
        found: DepthSettings = getattr(self, depth)
        return found


WebSearchValue = Annotated[
    Any, WithJsonSchema({"enum": [True, False, "quick", "balanced", "deep", None]})
]
DepthValue = Annotated[Any, WithJsonSchema({"enum": [True, "quick", "balanced", "deep", None]})]


class WebSearchFields(BaseModel):
    """What a request can ask for."""

    web_search: WebSearchValue = Field(
        False,
        description="Search the web first: true for the configured depth, or quick, balanced or "
        "deep.",
    )
