"""Checks that take minutes or hours: `python -m tests.scripts.<name>` runs one."""
