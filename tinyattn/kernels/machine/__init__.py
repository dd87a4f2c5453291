"""Vectors, tiles, packing and threads. Only this folder emits LLVM or uses Numba's internals."""
