"""Reading pages: everything between an address and its text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from urllib.parse import unquote, urlsplit

from hookline import InvalidRequest, Server
from hookline_websearch.browser import Browser, Seen, Unseen
from hookline_websearch.cache import PageCache
from hookline_websearch.content.clean import clean, one_line
from hookline_websearch.content.kinds import HTML, PDF, kind
from hookline_websearch.content.pool import ReadingPool, TooHard
from hookline_websearch.content.result import Content
from hookline_websearch.fetch import Fetched, Fetcher, Unread
from hookline_websearch.guard import Guard
from hookline_websearch.page import Look, Page
from hookline_websearch.reading_settings import ReadingSettings

log = logging.getLogger(__name__)

NOT_IN_TIME = "it was not read in time"
LATE = "it needs scripts, and the browser did not run them in time"

SPARE_SECONDS = 0.1
"""Of the time for a page, kept for what there is of it without the browser."""


class Reader:
    """Reads pages for all requests of a server. Use `reader`, which opens and closes one."""

    def __init__(self, settings: ReadingSettings, server: Server, guard: Guard) -> None:
        self._settings = settings
        self._server = server
        self._guard = guard
        self._fetcher = Fetcher(settings, guard)
        self._pool = ReadingPool(settings.reading_processes, settings.reading_seconds)
        self._cache = PageCache(
            server.data_dir / "websearch",
            seconds=settings.cache_seconds,
            most_bytes=int(settings.cache_mb * 2**20),
            rules=f"{settings.allowed_networks} {settings.allowed_ports} {settings.robots}",
        )
        self._browser = Browser(settings, guard)

    @property
    def can_look(self) -> bool:
        """Whether there is a browser for `look`."""
        return self._browser.problem is None

    async def open(self) -> None:
        """Makes ready what takes its time to start."""
        if self._browser.problem is not None and self._settings.browser:
            log.info("pages that need scripts are not read: %s", self._browser.problem)
        await self._cache.open()
        self._pool.warm_up()

    async def close(self) -> None:
        """Ends connections, processes and the browser."""
        await self._browser.close()
        await self._pool.close()
        await self._fetcher.close()
        await self._cache.close()
        self._guard.close()

    async def read(
        self,
        urls: Sequence[str],
        seconds: float,
        done: Callable[[Page], None] | None = None,
    ) -> list[Page]:
        """Reads pages at once, a page for each URL, in order; those not read after ``seconds``
        say so. ``done`` hears of each page when it is read."""
        return list(await asyncio.gather(*(self._timed(url, seconds, done) for url in urls)))

    async def look(self, url: str, seconds: float) -> Look:
        """Shows a page to the browser: its text, its design, and a picture."""
        try:
            async with asyncio.timeout(seconds):
                return await self._look(url)
        except TimeoutError:
            return Look(Page(url, note=NOT_IN_TIME))

    async def _timed(self, url: str, seconds: float, done: Callable[[Page], None] | None) -> Page:
        end = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(end):
                page = await self._read(url, end - SPARE_SECONDS)
        except TimeoutError:
            page = Page(url, note=NOT_IN_TIME)
        except Exception:  # a page that breaks something costs no other page
            log.exception("reading %.200r failed", url)
            page = Page(url, note="it could not be read")
        if done is not None:
            done(page)
        return page

    async def _read(self, url: str, end: float) -> Page:
        kept = await self._cache.get(url)
        if kept is not None:
            return kept
        try:
            fetched = await self._fetcher.fetch(url)
            page, content = await self._page(url, fetched, end)
        except Unread as error:
            return Page(url, error.url or url, note=str(error))
        # A page that scripts would fill may be more the next time, when the browser is awake.
        if page.text and fetched.keep and not content.scripts:
            await self._cache.keep(page)
        return page

    async def _page(self, url: str, fetched: Fetched, end: float) -> tuple[Page, Content]:
        media_type = kind(fetched.media_type, fetched.body)
        if not media_type:
            what = fetched.media_type[:80] or "binary data"
            raise Unread(f"it is {what}, which is no text", fetched.url)
        if media_type == PDF:
            content = await self._pdf(fetched)
        else:
            content = await self._content(fetched.body, media_type, fetched.charset, fetched.url)
        page = Page(url, fetched.url, media_type=media_type)
        if content.scripts and media_type in HTML and self.can_look:
            try:
                async with asyncio.timeout_at(end):
                    content = await self._with_browser(fetched.url, content)
            except TimeoutError:
                page = replace(page, late=True)
        return self._filled(page, content, whole=fetched.whole), content

    async def _content(self, body: bytes, media_type: str, charset: str, url: str) -> Content:
        try:
            return await self._pool.read(
                body, media_type, charset, url, self._settings.max_page_chars
            )
        except TooHard as error:
            log.info("reading %.200r failed: %s", url, error)
            raise Unread("its text cannot be extracted", url) from error

    async def _shown(self, seen: Seen) -> Content:
        body = seen.html.encode("utf-8", "replace")
        return await self._content(body, "text/html", "utf-8", seen.url)

    async def _with_browser(self, url: str, content: Content) -> Content:
        """What the browser makes of a page that needs scripts, where that is more."""
        try:
            seen = await self._browser.visit(url)
            shown = await self._shown(seen)
        except (Unseen, Unread) as error:
            log.info("the browser did not help with %.200r: %s", url, error)
            return content
        return max(content, shown, key=lambda read: len(read.text))

    async def _look(self, url: str) -> Look:
        try:
            await self._fetcher.permit(url)
            seen = await self._browser.visit(url, picture=True)
            content = await self._shown(seen)
        except (Unseen, Unread) as error:
            return Look(Page(url, note=str(error)))
        page = self._filled(Page(url, seen.url, media_type="text/html"), content)
        return Look(page, seen.design, seen.picture)

    async def _pdf(self, fetched: Fetched) -> Content:
        if not fetched.whole:
            raise Unread(f"it is a PDF of more than {self._settings.max_page_mb:g} MB", fetched.url)
        name = unquote(urlsplit(fetched.url).path.rpartition("/")[2]) or "document.pdf"
        try:
            document = await self._server.parse_document(fetched.body, name, PDF)
        except InvalidRequest as error:
            raise Unread(
                f"it is a PDF that cannot be read: {error.message}", fetched.url
            ) from error
        if document is None:
            raise Unread("it is a PDF, and no plugin that reads those is active", fetched.url)
        most = self._settings.max_page_chars
        text = clean(document.text)
        title = document.title if document.title != name else ""
        return Content(text[:most], title or name, cut=len(text) > most)

    def _filled(self, page: Page, content: Content, *, whole: bool = True) -> Page:
        note = "only its beginning was read" if content.cut or not whole else ""
        empty = LATE if page.late else "there is no text in it"
        return replace(
            page,
            title=one_line(content.title) or page.final_url,
            site=content.site or site_of(page.final_url),
            date=_date(content.date),
            text=content.text,
            note=note if content.text else empty,
        )


@asynccontextmanager
async def reader(settings: ReadingSettings, server: Server) -> AsyncIterator[Reader]:
    """A reader while the server runs."""
    opened = Reader(settings, server, Guard(settings.allowed_networks, settings.allowed_ports))
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


def site_of(url: str) -> str:
    """The host of a URL, without ``www.``."""
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
