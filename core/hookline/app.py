"""`create_app`: the whole server as one Quart application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from quart import Quart, Response, request

from hookline.api import access, chat, completions, errors, models, openapi, tokens
from hookline.api.linger import Linger
from hookline.api.pacing import PacedRequest, Pacing
from hookline.api.plugin_routes import PluginRoutes
from hookline.api.request_log import RequestLog
from hookline.api.request_scope import RequestScope
from hookline.config import Settings
from hookline.kernel import Kernel
from hookline.server import Clock


def create_app(
    settings: Settings,
    *,
    plugins: Mapping[str, object] | None = None,
    clock: Clock | None = None,
) -> Quart:
    """Builds everything, loads nothing yet: that begins when the application starts serving.

    ``plugins`` are further plugins by name, as classes or instances; they are called before those
    of the configuration. Raises StartError. The kernel is at ``app.extensions["hookline"]``.
    """
    kernel = Kernel(settings, plugins=plugins, clock=clock)
    app = app_of(kernel)
    app.while_serving(_running(kernel))
    return app


def app_of(kernel: Kernel) -> Quart:
    """The HTTP side of a kernel that somebody else runs."""
    app = Quart("hookline", static_folder=None)
    app.request_class = PacedRequest
    app.extensions["hookline"] = kernel
    app.url_map.merge_slashes = False  # redirects, which clients of an API do not follow
    server = kernel.settings.server
    app.config["MAX_CONTENT_LENGTH"] = int(server.max_body_mb * 1024 * 1024)
    app.config["BODY_TIMEOUT"] = server.body_timeout
    app.config["RESPONSE_TIMEOUT"] = None
    errors.install(app)
    access.install(app, kernel.settings, kernel.authenticate)
    for part in (chat, completions, models, tokens, openapi):
        app.register_blueprint(part.blueprint(kernel))
    PluginRoutes(app, kernel).add_all()
    app.after_request(_counter(kernel))
    app.asgi_app = RequestScope(Linger(Pacing(app.asgi_app)))  # type: ignore[method-assign]
    if kernel.settings.log_requests:
        app.asgi_app = RequestLog(app.asgi_app)  # type: ignore[method-assign]
    return app


def _running(kernel: Kernel) -> Callable[[], AsyncGenerator[None, None]]:
    async def while_serving() -> AsyncGenerator[None, None]:
        async with kernel.running():
            yield

    return while_serving


def _counter(kernel: Kernel) -> Callable[[Response], Awaitable[Response]]:
    async def count(response: Response) -> Response:
        route = request.url_rule.rule if request.url_rule else "none"
        kernel.metrics.requests.labels(route, str(response.status_code)).inc()
        return response

    return count
