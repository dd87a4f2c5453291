"""Squared distances from one row of a matrix to other rows with given indices."""

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    element_pointer,
    emit_by_length,
    emit_masked_load,
    size_of,
    vector_pointer,
)
from tinyattn.kernels.machine.tiles import transpose_in_registers

if numba is not None:
    from llvmlite import ir
    from numba import types


def _add_squares_reference(total, x, i, ids, m, f, D):
    for g in range(f, min(f + len(total), D)):
        gap = x[ids[m : m + len(total)] * D + g] - x[i * D + g]
        total = total + gap * gap
    return total


@intrinsic(_add_squares_reference)
def add_squares(typing, total, x, i, ids, m, f, D):
    """Add (x_jg - x_ig)² to total for the features g from f on, as many as a vector has lanes.

    x has rows of D features, and lane l of total belongs to row j = ids[m + l]. Rows are read as
    vectors of features, then transposed.
    """

    def code(context, builder, signature, args):
        total, x, i, ids, m, f, D = args
        kind, integer = total.type, ir.IntType(64)

        def row(number, lanes):
            at_f = builder.add(builder.mul(number, D), f)
            place = vector_pointer(
                builder, element_pointer(context, builder, signature.args[1], x, at_f, 1)
            )
            if lanes is None:
                return builder.load(place, align=size_of(kind.element))
            return emit_masked_load(builder, place, lanes, 0)

        def sums(lanes=None):
            own, squares, found = row(i, lanes), [], total
            for l in range(kind.count):
                place = element_pointer(
                    context, builder, signature.args[3], ids, builder.add(m, integer(l)), 1
                )
                gap = builder.fsub(row(builder.sext(builder.load(place), integer), lanes), own)
                squares.append(builder.fmul(gap, gap))
            # features after the last one are 0
            for square in transpose_in_registers(builder, squares):
                found = builder.fadd(found, square)
            return found

        return emit_by_length(builder, kind, f, D, sums, sums)

    return total(total, x, types.intp, ids, types.intp, types.intp, types.intp), code
