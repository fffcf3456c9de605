"""The providers that come with the plugin."""

from hookline_websearch.providers.mediawiki import MediaWiki
from hookline_websearch.providers.searxng import SearXNG

__all__ = ["MediaWiki", "SearXNG"]
