"""Ctrl-C ends every command with one line and exit code 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]
Install = Callable[..., None]

INTERRUPTED = """
    from hookline import hookimpl

    class Plugin:
        @hookimpl
        def commands(self, cli):
            @cli.command()
            def wait():
                raise KeyboardInterrupt
"""

SLOW = """
import time
from hookline import hookimpl

class Slow:
    @hookimpl
    def create_engine(self, model):
        time.sleep(600)
"""


def test_a_command_that_is_interrupted(run: Run, install: Install) -> None:
    install("waits", INTERRUPTED)
    Path("hookline.toml").write_text('plugins = ["waits"]\n')
    result = run("wait")
    assert result.exit_code == 130
    assert result.stderr == "\nStopped.\n"


def test_a_server_that_still_loads_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "slow.py").write_text(SLOW)
    (tmp_path / "hookline.toml").write_text(
        'plugins = ["slow"]\ndata_dir = "data"\nserver.port = 0\n'
    )
    environ = {name: v for name, v in os.environ.items() if not name.startswith("HOOKLINE_")}
    command = [sys.executable, "-m", "hookline", "serve"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environ
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert "starting at http://127.0.0.1:" in first
    assert "stopping" in rest
    assert "Traceback" not in rest
    assert process.returncode == 130
