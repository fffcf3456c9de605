"""A browser for pages that are made by scripts, and for how pages look."""

from hookline_websearch.browser.driver import Browser, Seen, Unseen

__all__ = ["Browser", "Seen", "Unseen"]
