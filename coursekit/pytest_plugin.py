"""A plugin for pytest with which failures show the lines of tests, not those of the library.

pytest leaves out frames whose module has `__tracebackhide__`, unless you use `--full-trace`.
"""

import os
import sys

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Mark the loaded modules of the library before a failure is reported."""
    if call.excinfo is None or os.environ.get("TINYATTN_TRACEBACKS") == "full":
        return
    for name, module in list(sys.modules.items()):
        if name == "tinyattn" or name.startswith("tinyattn."):
            vars(module).setdefault("__tracebackhide__", True)
