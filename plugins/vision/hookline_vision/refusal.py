"""Why an image cannot be used."""


class Refused(Exception):
    """The image cannot be used; the text says why and what to do, as the end of a sentence."""
