"""Convolution and pooling as sums over neighbours, which a table names.

    y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i)        (slide K03, before the activation θ)

j counts positions of y, i the places in the kernel, α features of y, β features of x. I[j, i] is
the position of x that y_j sees at place i, or -1 where the kernel hangs over the edge: that term is
0. Stride, padding, dilation and the number of axes are in the table, so the loops are the same for
text and pictures. All arrays have their positions on one axis: x [B, C, N], w [O, C / groups, K],
y [B, O, P], I [P, K].

These are the loops to read, not to be fast; the fast ones are in conv.py.
"""

import numpy as np

from tinyattn.kernels import jit

NOBODY = -1  # in the table: no neighbour there


@jit
def sums(y, x, w, b, I, groups):
    """y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i), each group of α with its own features β."""
    for n in range(len(x)):
        for α in range(len(w)):
            first = α // (len(w) // groups) * w.shape[1]  # feature of x that this group begins with
            for j in range(len(I)):
                y[n, α, j] = b[α]
                for β in range(w.shape[1]):
                    for i in range(I.shape[1]):
                        if I[j, i] != NOBODY:
                            y[n, α, j] += w[α, β, i] * x[n, first + β, I[j, i]]


@jit
def sums_backward(dx, dw, db, g, x, w, I, groups):
    """Every product of the sum hands g_jα, times its other factor, to w_αβi and to x_βI(j,i)."""
    for n in range(len(x)):
        for α in range(len(w)):
            first = α // (len(w) // groups) * w.shape[1]
            for j in range(len(I)):
                db[α] += g[n, α, j]
                for β in range(w.shape[1]):
                    for i in range(I.shape[1]):
                        if I[j, i] != NOBODY:
                            dw[α, β, i] += g[n, α, j] * x[n, first + β, I[j, i]]
                            dx[n, first + β, I[j, i]] += g[n, α, j] * w[α, β, i]


@jit
def mean(y, x, I):
    """y_jα = 1/K Σ_i x_αI(j,i); places over the edge count as zeros."""
    for n in range(len(x)):
        for α in range(x.shape[1]):
            for j in range(len(I)):
                y[n, α, j] = 0
                for i in range(I.shape[1]):
                    if I[j, i] != NOBODY:
                        y[n, α, j] += x[n, α, I[j, i]] / I.shape[1]


@jit
def mean_backward(dx, g, I):
    """Every neighbour receives its share of g."""
    for n in range(len(g)):
        for α in range(g.shape[1]):
            for j in range(len(I)):
                for i in range(I.shape[1]):
                    if I[j, i] != NOBODY:
                        dx[n, α, I[j, i]] += g[n, α, j] / I.shape[1]


@jit
def largest(y, x, I):
    """y_jα = max_i x_αI(j,i); places over the edge do not count."""
    for n in range(len(x)):
        for α in range(x.shape[1]):
            for j in range(len(I)):
                y[n, α, j] = -np.inf
                for i in range(I.shape[1]):
                    if I[j, i] != NOBODY:
                        value = x[n, α, I[j, i]]
                        if value > y[n, α, j] or value != value:  # the second: not a number
                            y[n, α, j] = value


@jit
def largest_backward(dx, g, y, x, I):
    """The largest neighbours share g."""
    for n in range(len(g)):
        for α in range(g.shape[1]):
            for j in range(len(I)):
                tied = 0
                for i in range(I.shape[1]):
                    if I[j, i] != NOBODY and x[n, α, I[j, i]] == y[n, α, j]:
                        tied += 1
                for i in range(I.shape[1]):
                    if I[j, i] != NOBODY and x[n, α, I[j, i]] == y[n, α, j]:
                        dx[n, α, I[j, i]] += g[n, α, j] / tied
