"""From the bytes of a page to the text that matters in it."""
