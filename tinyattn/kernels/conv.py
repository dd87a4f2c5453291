"""Convolution as a sum over neighbours, which a table names.

    y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i)        (slide K03, before the activation θ)

j counts positions of y, i the places in the kernel, α features of y, β features of x. I[j, i] is
the position of x that y_j sees at place i, or -1 where the kernel hangs over the edge: that term is
0. Stride, padding, dilation and the number of axes are in the table, so the loops are the same for
text and pictures. All arrays have their positions on one axis: x [B, C, N], w [O, C / groups, K],
y [B, O, P], I [P, K].

A gradient dL/dx is called dx; g is dL/dy.
"""

from tinyattn.kernels import jit

OUTSIDE = -1  # entry of the table where the kernel extends beyond the edge of x


@jit
def conv_loops(y, x, w, b, I, groups):
    """y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i), each group of α with its own features β."""
    for n in range(len(x)):
        for α in range(len(w)):
            # index of the first feature of x in this group
            first = α // (len(w) // groups) * w.shape[1]
            for j in range(len(I)):
                y[n, α, j] = b[α]
                for β in range(w.shape[1]):
                    for i in range(I.shape[1]):
                        if I[j, i] != OUTSIDE:
                            y[n, α, j] += w[α, β, i] * x[n, first + β, I[j, i]]


@jit
def conv_loops_backward(dx, dw, db, g, x, w, I, groups):
    """Each product w_αβi x_βI(j,i) of the sum gives g_jα times one factor to the other factor."""
    for n in range(len(x)):
        for α in range(len(w)):
            first = α // (len(w) // groups) * w.shape[1]
            for j in range(len(I)):
                db[α] += g[n, α, j]
                for β in range(w.shape[1]):
                    for i in range(I.shape[1]):
                        if I[j, i] != OUTSIDE:
                            dw[α, β, i] += g[n, α, j] * x[n, first + β, I[j, i]]
                            dx[n, first + β, I[j, i]] += g[n, α, j] * w[α, β, i]
