"""Convolution as a sum over neighbours, with their indices in a table.

    y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i)        (slide K03, before the activation θ)

The index j runs over positions of y, i over positions in the kernel, α over features of y, β over
features of x. I[j, i] is the position of x that is multiplied with position i of the kernel to
compute y_j. It is -1 in the padding, where the term is 0. Stride, padding, dilation and the number
of axes affect only this table, so the loops are the same for text and images. All arrays have their
positions on one axis: x [B, C, N], w [O, C / groups, K], y [B, O, P], I [P, K].

A gradient dL/dx is called dx, and dL/dy is called g.
"""

from tinyattn.kernels import jit

OUTSIDE = -1  # entry of the table where the kernel extends beyond the edge of x


@jit
def conv_loops(y, x, w, b, I, groups):
    """Write y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i) to y, where β is in the same group as α."""
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
    """Add the gradients to dx, dw and db: for each factor of a term, g times the other factor."""
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
