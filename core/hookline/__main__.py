"""``python -m hookline``."""

from hookline.cli import main

main()
