"""Small GGUF files for tests."""

import struct

import numpy as np


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def write_gguf(path, metadata, tensors, version=3):
    """A file of float32 tensors, or of (type, shape, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += text(key)
        if isinstance(value, str):
            head += struct.pack("<I", 8) + text(value)
        elif isinstance(value, float):
            head += struct.pack("<If", 6, value)
        elif isinstance(value, list):
            head += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        elif isinstance(value, np.ndarray):
            head += struct.pack("<IIQ", 9, 5, len(value)) + value.astype("<i4").tobytes()
        else:
            head += struct.pack("<II", 4, value)
    body = b""
    for name, t in tensors.items():
        kind, shape, raw = t if isinstance(t, tuple) else (0, t.shape, t.astype("<f4").tobytes())
        body += b"\0" * (-len(body) % 32)
        head += text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, len(body))
        body += raw
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
