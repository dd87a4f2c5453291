"""For pytest: failures show the lines of the tests, not those of the library.

pytest leaves out frames whose module has `__tracebackhide__`; `pytest --full-trace` shows them.
"""

import os
import sys

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Mark the modules of the library that are loaded, before a failure is written down."""
    if call.excinfo is None or os.environ.get("TINYATTN_TRACEBACKS") == "full":
        return
    for name, module in list(sys.modules.items()):
        if name == "tinyattn" or name.startswith("tinyattn."):
            vars(module).setdefault("__tracebackhide__", True)
