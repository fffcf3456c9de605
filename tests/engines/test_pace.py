from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookline.engines.pace import CHUNK_MIN, Pace


@given(st.integers(1, 5000), st.floats(0, 10), st.floats(1, 1e5))
def test_a_single_token_never_remains(left: int, seconds: float, rate: float) -> None:
    pace = Pace(512)
    pace.took(100, 100 / rate)
    size = pace.chunk(left, seconds)
    assert left - size != 1
    assert min(left, CHUNK_MIN - 1) <= size <= min(left, 512)
    assert size >= 2 or left == 1


def test_chunks_follow_the_speed() -> None:
    pace = Pace(512)
    assert pace.chunk(1000, 0.1) == CHUNK_MIN
    pace.took(100, 0.1)
    assert pace.chunk(1000, 0.1) == 100
    pace.took(2, 1.0)
    assert pace.chunk(1000, 0.1) == 100
    assert pace.chunk(1000, 60.0) == 512
