"""Drives an installed Chromium: started when it is needed, kept warm, closed when idle.

Nothing of what it loads goes around the guard: its only way out is `GuardedProxy`. Each visit has
a context of its own without cookies, storage, downloads, extensions or service workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline_websearch.browser.arguments import ARGUMENTS
from hookline_websearch.browser.design import describe, script
from hookline_websearch.browser.find import find_browser
from hookline_websearch.browser.proxy import GuardedProxy, Ticket
from hookline_websearch.guard import Guard, Refused
from hookline_websearch.reading_settings import ReadingSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import BrowserContext, Page

log = logging.getLogger(__name__)

VISITS = 2
"""Pages that are open at once."""

VIEW = {"width": 1280, "height": 800}
"""Pixels of the window, and of pictures."""

CALM_SECONDS = 2.5
"""How long a page that is there may go on loading."""

HTML_MAX = 10 * 2**20
"""Characters of a page that are taken from the browser."""

CLOSE_SECONDS = 3.0


class Unseen(Exception):
    """The browser cannot show a page; ``str(error)`` says why, as half a sentence."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A page after its scripts ran. ``design`` and ``picture`` (PNG) where they were asked for."""

    url: str
    html: str
    design: str = ""
    picture: bytes = b""


class Browser:
    """The browser of a server. One event loop only."""

    def __init__(self, settings: ReadingSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        found = find_browser(settings.browser_path)
        self._program = found if isinstance(found, Path) else None
        self.problem = None if settings.browser and self._program else _problem(settings, found)
        self._places = asyncio.Semaphore(VISITS)
        self._launch: asyncio.Task[tuple[Chromium, GuardedProxy]] | None = None
        self._stack = AsyncExitStack()
        self._visits = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def visit(self, url: str, *, picture: bool = False) -> Seen:
        """Opens a page. Raises Unseen."""
        if self.problem is not None:
            raise Unseen(self.problem)
        self._check(url)
        try:
            async with (
                self._places,
                asyncio.timeout(self._settings.browser_seconds),
                self._context() as context,
            ):
                return await self._see(context, url, picture=picture)
        except TimeoutError as error:
            raise Unseen("the browser took too long") from error
        except Unseen:
            raise
        except Exception as error:  # of a browser that does not start or died, any kind
            log.warning("the browser failed at %.200r: %r", url, error)
            raise Unseen("the browser failed") from error

    async def close(self) -> None:
        """Ends the browser, whatever it does."""
        if self._idle is not None:
            self._idle.cancel()
        if self._closing is not None:
            await asyncio.wait([self._closing])
        await self._stop()

    def _check(self, url: str) -> None:
        try:
            self._guard.check(url)
        except Refused as error:
            raise Unseen(str(error)) from error

    @asynccontextmanager
    async def _context(self) -> AsyncIterator[BrowserContext]:
        self._visits += 1
        try:
            chromium, proxy = await self._started()
            most = int(self._settings.browser_mb * 2**20)
            async with proxy.visit(most) as ticket:
                context = await self._new_context(chromium, ticket)
                try:
                    yield context
                finally:
                    await self._end(context)
        finally:
            self._visits -= 1
            self._close_when_idle()

    async def _new_context(self, chromium: Chromium, ticket: Ticket) -> BrowserContext:
        return await chromium.new_context(
            proxy={"server": self._address, "username": ticket.name, "password": ticket.secret},
            viewport=VIEW,  # type: ignore[arg-type]  # its type is not public
            user_agent=self._settings.user_agent,
            accept_downloads=False,
            service_workers="block",
        )

    async def _end(self, context: BrowserContext) -> None:
        """Closes a context, or the browser where a page does not let go."""
        closing = asyncio.create_task(_quietly(context.close))
        done, _ = await asyncio.wait([closing], timeout=CLOSE_SECONDS)
        if not done:
            log.warning("the browser is ended, since it does not close a page")
            await self._stop()

    async def _see(self, context: BrowserContext, url: str, *, picture: bool) -> Seen:
        from playwright.async_api import Error

        page = await context.new_page()
        context.on("page", _close_soon)
        try:
            await page.goto(url, wait_until="domcontentloaded", timeout=0)
            with contextlib.suppress(Error):
                await page.wait_for_load_state("networkidle", timeout=CALM_SECONDS * 1000)
            html = await page.evaluate(
                "most => document.documentElement.outerHTML.slice(0, most)", HTML_MAX
            )
            self._check(page.url)
            seen = Seen(page.url, str(html)[:HTML_MAX])
            return await _with_design(page, seen) if picture else seen
        except Error as error:
            log.info("the browser cannot show %.200r: %s", url, str(error).partition("\n")[0])
            raise Unseen("the browser cannot show it") from error

    async def _started(self) -> tuple[Chromium, GuardedProxy]:
        """The browser, started by the first who needs it; it goes on starting when that one
        leaves, so that the next finds it."""
        launch = self._launch
        if launch is not None and launch.done() and not _works(launch):
            await self._stop()
        if self._launch is None:
            self._launch = asyncio.create_task(self._start())
            self._launch.add_done_callback(_works)
        return await asyncio.shield(self._launch)

    async def _start(self) -> tuple[Chromium, GuardedProxy]:
        stack = self._stack
        # In a thread: importing it takes a third of a second.
        playwright = await asyncio.to_thread(importlib.import_module, "playwright.async_api")
        proxy = GuardedProxy(self._guard)
        self._address = await proxy.start()
        stack.push_async_callback(proxy.close)
        driver = await stack.enter_async_context(playwright.async_playwright())
        chromium = await driver.chromium.launch(
            executable_path=self._program,
            headless=True,
            proxy={"server": self._address},
            # Chromium refuses to build its sandbox for root.
            chromium_sandbox=os.geteuid() != 0,
            args=list(ARGUMENTS),
            timeout=self._settings.browser_seconds * 1000,
        )
        stack.push_async_callback(_quietly, chromium.close)
        return chromium, proxy

    async def _stop(self) -> None:
        launch, self._launch = self._launch, None
        stack, self._stack = self._stack, AsyncExitStack()
        if launch is not None and not launch.done():
            launch.cancel()
            await asyncio.wait([launch])
        closing = asyncio.create_task(_quietly(stack.aclose))
        await asyncio.wait([closing], timeout=2 * CLOSE_SECONDS)

    def _close_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(
            self._settings.browser_idle_seconds, self._idle_long
        )

    def _idle_long(self) -> None:
        if not self._visits:
            self._closing = asyncio.create_task(self._stop())


def _problem(settings: ReadingSettings, found: Path | str) -> str:
    return found if settings.browser and isinstance(found, str) else "the browser is switched off"


def _works(launch: asyncio.Task[tuple[Chromium, GuardedProxy]]) -> bool:
    """Whether a browser that was started is there."""
    if launch.cancelled() or launch.exception() is not None:
        return False
    return launch.result()[0].is_connected()


def _close_soon(page: Page) -> None:
    """A page that another opened is not waited for."""
    task = asyncio.ensure_future(_quietly(page.close))
    task.add_done_callback(lambda _: None)


async def _quietly(step: Any) -> None:
    with contextlib.suppress(Exception):  # of a browser that died, any kind
        await step()


async def _with_design(page: Page, seen: Seen) -> Seen:
    measured = await page.evaluate(script())
    picture = await page.screenshot(type="png", animations="disabled", timeout=0)
    return Seen(seen.url, seen.html, describe(measured), picture)
