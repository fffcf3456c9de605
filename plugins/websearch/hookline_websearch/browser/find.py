"""Where the browser is."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser(path: Path | None = None) -> Path | str:
    """The program to start, or in words what is missing."""
    if find_spec("playwright") is None:
        return "the browser needs a package that is not installed: pip install 'hookline[browser]'"
    if path is not None:
        return path if path.is_file() else f"[plugin.websearch] browser_path: there is no {path}"
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return Path(found) if found else f"no browser is installed: none of {', '.join(NAMES)}"
