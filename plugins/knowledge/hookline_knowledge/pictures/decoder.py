"""A process that makes pixels of one encoded picture: a damaged or hostile one harms only it.

Run as a script with the largest number of pixels: the file in, width and height and RGB out, small
enough for CLIP. Ends with 1 and a sentence where it cannot. Imports nothing of Hookline, so that it
starts quickly.
"""

from __future__ import annotations

import io
import resource
import sys

SIDE = 512
"""Longest side of what comes out; the models look at fewer pixels."""
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
MEMORY_BYTES = 2 << 30


def main(most_pixels: int) -> None:
    """Decodes what comes in."""
    from PIL import Image, ImageOps

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    Image.MAX_IMAGE_PIXELS = None  # the limit is our own
    image = Image.open(io.BytesIO(sys.stdin.buffer.read()), formats=FORMATS)
    if image.width * image.height > most_pixels:
        sys.exit(f"The picture is larger than {most_pixels // 10**6} million pixels.")
    image.draft("RGB", (2 * SIDE, 2 * SIDE))  # a JPEG can be read at a fraction of its size
    upright = ImageOps.exif_transpose(image).convert("RGB")
    upright.thumbnail((SIDE, SIDE))
    sys.stdout.buffer.write(f"{upright.width} {upright.height}\n".encode() + upright.tobytes())


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except Exception as error:  # codecs raise nearly anything for a damaged file
        sys.exit(f"The picture cannot be read: {' '.join(str(error).split())[:200]}")
