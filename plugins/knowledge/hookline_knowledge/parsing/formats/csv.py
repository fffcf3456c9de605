"""CSV and TSV, row by row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from hookline import Section
from hookline_knowledge.parsing import tables
from hookline_knowledge.parsing.charset import clean, decode
from hookline_knowledge.parsing.reading import Reading

SAMPLE = 20_000
"""Characters from which the separator is guessed."""

SEPARATORS = ",;\t|"


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The table's sections; rows are counted as a spreadsheet would."""
    text = clean(decode(data))
    csv.field_size_limit(max(len(text), csv.field_size_limit()))  # of the process, so never less
    rows = csv.reader(io.StringIO(text, newline=""), _dialect(text[:SAMPLE]))
    numbered = ((number, [tables.one_line(c) for c in row]) for number, row in enumerate(rows, 1))
    yield from tables.sections(numbered, "", reading)


def _dialect(sample: str) -> type[csv.Dialect]:
    """The separator that is in the first line most often; the quoting is everybody's."""
    first = sample.lstrip("\n").partition("\n")[0]

    class Guessed(csv.excel):
        delimiter = max(SEPARATORS, key=first.count)

    return Guessed
