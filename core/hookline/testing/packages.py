"""Plugins that exist for one test, installed as pip would leave them."""

from __future__ import annotations

import textwrap
from pathlib import Path


def install_plugin(
    site: Path, source: str, *, name: str, version: str = "1.0", class_name: str | None = None
) -> str:
    """Writes a module and the records of a package around it into ``site``, a folder on
    ``sys.path``. Gives the module's name.

    ``source`` is the module's text; its plugin class is ``class_name``, by default the plugin's
    name with a capital.
    """
    module = f"hookline_tmp_{name.replace('-', '_')}"
    class_name = class_name or "".join(part.capitalize() for part in name.split("-"))
    (site / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    records = site / f"{module}-{version}.dist-info"
    records.mkdir(exist_ok=True)
    (records / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: {version}\n",
        encoding="utf-8",
    )
    (records / "entry_points.txt").write_text(
        f"[hookline.plugins]\n{name} = {module}:{class_name}\n", encoding="utf-8"
    )
    (records / "INSTALLER").write_text("pip\n", encoding="utf-8")
    return module
