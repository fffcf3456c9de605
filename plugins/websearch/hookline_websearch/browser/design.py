"""How a page looks, in a few lines of words and numbers."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hookline_websearch.content.clean import one_line

NUMBERS = re.compile(r"rgba?\((\d+),\s*(\d+),\s*(\d+)(?:,\s*([\d.]+))?\)")
CLEAR = "rgba(0, 0, 0, 0)"


class _Style(BaseModel):
    font: str = ""
    size: str = ""
    weight: str = ""
    color: str = ""
    background: str = ""
    radius: str = ""
    padding: str = ""
    border: str = ""
    shadow: str = ""
    transform: str = ""


class _Region(BaseModel):
    name: str
    x: float
    y: float
    width: float
    height: float
    flow: str = ""
    position: str = ""
    background: str = ""


class _Measured(BaseModel):
    """What a page says; a hostile one says what it likes."""

    model_config = ConfigDict(extra="ignore")

    page: str = ""
    backgrounds: list[str] = Field([], max_length=5)
    colors: list[str] = Field([], max_length=5)
    fonts: list[str] = Field([], max_length=5)
    sizes: list[str] = Field([], max_length=5)
    heading: _Style | None = None
    subheading: _Style | None = None
    text: _Style | None = None
    link: _Style | None = None
    button: _Style | None = None
    regions: list[_Region] = Field([], max_length=5)
    grids: list[str] = Field([], max_length=3)
    width: float = 0
    height: float = 0


def script() -> str:
    """The JavaScript whose value `describe` takes."""
    return files(__package__).joinpath("measure.js").read_text(encoding="utf-8")


def describe(measured: Any) -> str:
    """What was measured in a page, as Markdown; empty where the page gave no sense."""
    try:
        m = _Measured.model_validate(measured)
    except ValidationError:
        return ""
    lines = [
        f"Page: {m.width:.0f} × {m.height:.0f} px, background {_color(m.page)}",
        _list("Backgrounds by area", map(_color, m.backgrounds)),
        _list("Text colours by use", map(_color, m.colors)),
        _list("Fonts by use", m.fonts),
        _list("Sizes and weights by use", m.sizes),
        *(
            _style(name, style)
            for name, style in (
                ("Main heading", m.heading),
                ("Second heading", m.subheading),
                ("Paragraph", m.text),
                ("Link", m.link),
                ("Button", m.button),
            )
        ),
        *map(_region, m.regions),
        _list("Groups", m.grids),
    ]
    return "\n".join(f"- {one_line(line)}" for line in lines if line)


def _list(name: str, values: Any) -> str:
    found = list(dict.fromkeys(str(value)[:80] for value in values))
    return f"{name}: {', '.join(found)}" if found else ""


def _color(css: str) -> str:
    """A colour as ``#rrggbb``, with its opacity where it is not full."""
    match = NUMBERS.fullmatch(css)
    if match is None:
        return css[:40]
    hexadecimal = "#" + "".join(f"{min(int(part), 255):02x}" for part in match.groups()[:3])
    return hexadecimal if match[4] in (None, "1") else f"{hexadecimal} at {match[4]}"


def _style(name: str, style: _Style | None) -> str:
    if style is None:
        return ""
    parts = [f"{style.font[:60]} {style.size} weight {style.weight}, {_color(style.color)}"]
    if style.background not in ("", CLEAR):
        parts.append(f"on {_color(style.background)}")
    if style.radius not in ("", "0px"):
        parts.append(f"corners {style.radius}")
    if style.transform not in ("", "none"):
        parts.append(style.transform)
    if name == "Button":
        parts.append(f"padding {style.padding}")
        if style.shadow:
            parts.append("shadow")
    return f"{name}: {', '.join(parts)}"


def _region(region: _Region) -> str:
    where = f"{region.width:.0f} × {region.height:.0f} px at {region.x:.0f}, {region.y:.0f}"
    parts = [where, region.flow]
    if region.position in ("fixed", "sticky"):
        parts.append(region.position)
    if region.background not in ("", CLEAR):
        parts.append(f"background {_color(region.background)}")
    return f"{region.name.capitalize()}: {', '.join(parts)}"
