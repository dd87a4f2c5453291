"""A deck as a browser shows it, if there is a Chromium on this machine."""

import shutil
import subprocess

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
needed = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to look at the deck with")


def show(path, folder, size="1280,720"):
    """The page after its scripts have run, as HTML; the network is cut off."""
    options = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --dump-dom"
    options += f" --disable-background-networking --disable-component-update --window-size={size}"
    command = [CHROMIUM, *options.split(), f"--user-data-dir={folder / 'profile'}"]
    command += ["--proxy-server=127.0.0.1:9", "--virtual-time-budget=20000", path.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=120)
    return done.stdout
