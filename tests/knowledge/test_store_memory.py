"""Free memory goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import ctypes, sys, threading
from hookline_knowledge.store.memory import give_back, keep_few_heaps

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

def work():
    kept.append([bytes(1000) for _ in range(20_000)])

keep_few_heaps()
kept = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
full = resident()
kept[:] = [kept[0][::500]]
give_back()
print(full - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc's heaps")
def test_what_is_freed_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True)
    assert int(done.stdout) > 40_000  # KiB, of 80,000
