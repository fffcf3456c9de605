"""Callers who bring a JSON Web Token of an identity provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jwt
from pydantic import BaseModel, ConfigDict, Field

from hookline import Caller, ConfigError, InvalidApiKey, hookimpl

Algorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]


class JwtSettings(BaseModel):
    """``[plugin.jwt]``"""

    model_config = ConfigDict(extra="forbid")

    key_file: Path = Field(description="The public key (PEM), or the shared secret of HS256.")
    algorithms: list[Algorithm] = Field(
        ["RS256"], min_length=1, description="Signatures that are accepted."
    )
    audience: str | None = Field(None, description="Whom tokens must be for.")
    issuer: str | None = Field(None, description="Who must have issued them.")
    leeway_seconds: int = Field(30, ge=0, description="How far clocks may differ.")


class Jwt:
    """The plugin. Raises ConfigError where the key cannot be read."""

    settings_model = JwtSettings
    essential = True

    def __init__(self, settings: JwtSettings) -> None:
        self._settings = settings
        try:
            self._key = settings.key_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"[plugin.jwt] key_file: {error}") from error

    @hookimpl
    async def authenticate(self, headers: Mapping[str, str]) -> Caller | None:
        """The person a token speaks for. Leaves bearers that are no token to the next plugin."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or token.count(".") != 2:
            return None
        try:
            claims = self._claims(token.strip())
        except jwt.PyJWTError as error:
            raise InvalidApiKey(f"The token is not accepted: {error}.") from error
        subject = str(claims["sub"])
        return Caller(f"jwt:{subject}", str(claims.get("name", subject)), dict(claims))

    def _claims(self, token: str) -> Mapping[str, Any]:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            self._key,
            algorithms=list(self._settings.algorithms),
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=self._settings.leeway_seconds,
            options={"require": ["exp", "sub"]},
        )
        return claims
