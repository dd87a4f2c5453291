"""The operations of `kernels/` on vectors and threads."""
