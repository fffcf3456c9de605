"""``hookline knowledge``: collections from the command line, also while the server runs."""

from hookline_knowledge.cli.group import add_to

__all__ = ["add_to"]
