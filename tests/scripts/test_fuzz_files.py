"""Test a sample of the damaged files of `fuzz_files.py`, which take an hour for 100,000 each."""

import pytest

from tests.scripts import fuzz_files


@pytest.mark.parametrize("name", fuzz_files.KINDS)
def test_broken_files_are_read_or_refused(name, tmp_path):
    found = fuzz_files.run(name, 300, seed=1, folder=tmp_path)
    assert not found.faults, found.faults[:5]
    assert found.read > 2 and found.refused > 100  # both happen, else nothing is tried
    print(f"\n{name}: {found.read} files read, {found.refused} refused")


def test_the_fuzzer_sees_faults(monkeypatch):
    def careless(path, content):
        if len(content) % 3 == 0:
            raise IndexError("careless")
        if len(content) % 3 == 1:
            raise ValueError("no file is named")
        list(range(100_000))  # needs memory

    kind = fuzz_files.KINDS["gguf"]._replace(read=careless)
    monkeypatch.setitem(fuzz_files.KINDS, "gguf", kind)
    monkeypatch.setattr(fuzz_files, "_valid", lambda kind, folder: [b"a" * n for n in range(9)])
    faults = " ".join(fault for _, fault in fuzz_files.run("gguf", 60).faults)
    for expected in ("not documented: IndexError", "does not name the file", "bytes for a file"):
        assert expected in faults
