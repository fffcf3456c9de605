"""What plugins with commands may import besides `hookline`."""

from hookline.cli.output import human_size, json_option, note, print_json, print_table, warn
from hookline.config import Settings
from hookline.kernel import Kernel
from hookline.server import Server

__all__ = [
    "human_size",
    "json_option",
    "note",
    "offline_server",
    "print_json",
    "print_table",
    "warn",
]


def offline_server(settings: Settings) -> Server:
    """A server that does not run, for a command that needs settings, ``data_dir`` and what plugins
    make, such as an embedder. It has no model, and no plugin's ``lifespan`` is entered."""
    return Kernel(settings)
