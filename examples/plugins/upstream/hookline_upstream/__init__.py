"""An engine that is somewhere else: llama-server, vLLM, or another Hookline."""

from hookline_upstream.engine import UpstreamEngine
from hookline_upstream.plugin import Upstream
from hookline_upstream.settings import UpstreamSettings

__all__ = ["Upstream", "UpstreamEngine", "UpstreamSettings"]
