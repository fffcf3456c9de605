"""Everything that can go wrong, as a tree.

    HooklineError
    ├── StartError                 the server cannot start; shown without a traceback
    │   ├── ConfigError            a setting is wrong
    │   │   └── MissingExtra       it needs libraries that are not installed
    │   └── PluginError            a plugin cannot be used
    └── ApiError                   an answer to a client, in OpenAI's error body
        ├── InvalidRequest     400
        │   ├── InvalidJson
        │   ├── ContextLengthExceeded
        │   └── OtherModelConfigured
        ├── InvalidApiKey      401
        ├── QuotaExhausted     402
        ├── Forbidden          403
        ├── NotFound           404
        ├── RequestTooLarge    413
        ├── UnsupportedMedia   415
        ├── PluginFailed       500
        ├── EngineUnavailable  502
        └── Unavailable        503
            ├── NoModel
            ├── PluginPaused
            ├── QueueFull
            └── ShuttingDown

A plugin refuses a request by raising from the ``ApiError`` side, or a subclass of its own.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class HooklineError(Exception):
    """Base of all errors that Hookline raises on purpose."""


class StartError(HooklineError):
    """The server cannot start; ``str(error)`` is one line for the operator."""


class ConfigError(StartError):
    """A setting is missing, unknown or wrong."""


class MissingExtra(ConfigError):
    """What is asked for needs the libraries of an extra that is not installed.

    ``what`` begins a sentence, ``extra`` is one of Hookline's, ``module`` what could not be
    imported.
    """

    def __init__(self, what: str, extra: str, module: str | None = None) -> None:
        missing = f" ('{module}' is missing)" if module else ""
        super().__init__(
            f"{what} needs libraries that are not installed{missing}; install them with: "
            f"pip install 'hookline[{extra}]'"
        )


class PluginError(StartError):
    """A plugin cannot be found, imported, constructed or combined with the others."""


class ApiError(HooklineError):
    """An answer to a client that is not a success.

    ``message`` says what was wrong, where, and what to do. ``param`` names the request field,
    ``code`` is for programs and overrides the class's own.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: str | None = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code if code is not None else type(self).code
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The error as OpenAI's JSON body."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }


class InvalidRequest(ApiError):
    """A parameter is invalid."""

    status = 400
    type = "invalid_request_error"


class InvalidJson(InvalidRequest):
    """The body is not a JSON object."""

    code = "invalid_json"


class ContextLengthExceeded(InvalidRequest):
    """What must stay of the prompt does not fit into the context."""

    code = "context_length_exceeded"


class OtherModelConfigured(InvalidRequest):
    """The request names a configured model that is not the loaded one."""

    code = "model_not_loaded"


class InvalidApiKey(ApiError):
    """A key is required and is missing, wrong or revoked."""

    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"


class QuotaExhausted(ApiError):
    """Today's allowance is used up. 402, which clients do not retry."""

    status = 402
    type = "insufficient_quota"
    code = "trial_exhausted"


class Forbidden(ApiError):
    """A browser page of another origin, or a ``Host`` that is not ours."""

    status = 403
    type = "invalid_request_error"
    code = "forbidden"


class NotFound(ApiError):
    """No such route, model or object."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"


class RequestTooLarge(ApiError):
    """The body is over the limit."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class UnsupportedMedia(ApiError):
    """The body is not ``application/json``."""

    status = 415
    type = "invalid_request_error"
    code = "unsupported_media_type"


class PluginFailed(ApiError):
    """A plugin broke while serving one of its own request fields."""

    code = "plugin_failed"


class EngineUnavailable(ApiError):
    """The engine failed while it served this request; it is restarted."""

    status = 502
    code = "engine_unavailable"


class Unavailable(ApiError):
    """The request can be repeated later; carries ``Retry-After``."""

    status = 503

    def __init__(self, message: str, *, retry_after: int = 1, **rest: Any) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after)}, **rest)


class NoModel(Unavailable):
    """No model is loaded yet."""

    code = "model_not_loaded"


class PluginPaused(Unavailable):
    """The request asks for a plugin that is left alone for a while, because it kept failing."""

    code = "plugin_paused"


class QueueFull(Unavailable):
    """Too many requests wait already."""

    code = "queue_full"


class ShuttingDown(Unavailable):
    """The server finishes what runs and takes nothing new."""

    code = "shutting_down"
