"""``[plugin.knowledge.parsing]``: what a file may cost before it is given up."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MIB = 2**20


class ParsingSettings(BaseModel):
    """Limits of the processes that read files."""

    model_config = ConfigDict(extra="forbid")

    workers: int = Field(
        2, ge=1, le=32, description="Files that are read at once; one more where it is small."
    )
    seconds: float = Field(
        120, gt=0, le=3600, description="How long reading a file may take, OCR not counted."
    )
    memory_mb: int = Field(
        1024, ge=256, le=65536, description="Memory that reading a file may take, in MiB."
    )
    file_mb: int = Field(100, ge=1, le=2048, description="Size of a file, in MiB.")
    expanded_mb: int = Field(
        256, ge=1, le=8192, description="Size of a compressed file once unpacked, in MiB."
    )
    expansion_ratio: int = Field(
        200,
        ge=2,
        le=100_000,
        description="How many times its size a compressed part of more than 1 MiB may unpack to.",
    )
    pages: int = Field(5000, ge=1, le=1_000_000, description="Pages or slides of a file.")
    rows: int = Field(200_000, ge=1, le=10_000_000, description="Rows of a table file.")
    characters: int = Field(
        20_000_000, ge=1000, le=1_000_000_000, description="Characters of text in a file."
    )
    attachments: int = Field(
        50, ge=0, le=1000, description="Files inside of a mail or a PDF that are read with it."
    )
    ocr: bool = Field(
        True, description="Read images and scanned pages, where the extra 'ocr' is installed."
    )
    ocr_pages: int = Field(100, ge=1, le=10_000, description="Scanned pages read in a file.")
    ocr_seconds: float = Field(60, gt=0, le=600, description="How long OCR of a page may take.")
