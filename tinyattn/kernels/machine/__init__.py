"""Vectors, tiles, packing, threads: only this folder emits LLVM or relies on Numba's insides."""
