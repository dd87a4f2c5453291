"""Products of matrices and tensors, all of which are based on matmul or einsum.

`contract` computes an einsum itself, because np.einsum(optimize=True) computes batched products
without a matrix product before NumPy 2.4: with NumPy 2.2, attention scores [8, 8, 128, 128] take 16
times as long. NumPy 2.4 is as fast for large products, but takes 1.6 to 2.9 times as long for small
ones, such as three matrices of 32 × 64. In the docstrings, x̄ is dL/dx.
"""

import math
import string
from functools import lru_cache

import numpy as np

from tinyattn.engine.autograd import Tensor, primitive
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.dispatch import implements
from tinyattn.ops.elementwise import multiply
from tinyattn.ops.marks import of_whole_numbers
from tinyattn.ops.matmul import gemm
from tinyattn.ops.reduce import axes_of
from tinyattn.ops.reduce import max as reduce_max
from tinyattn.ops.reduce import min as reduce_min
from tinyattn.ops.reduce import sum as reduce_sum
from tinyattn.ops.shape import diagonal


def _t(x):
    return np.swapaxes(x, -1, -2)


@implements(np.matmul)
@of_whole_numbers
@primitive
def matmul(a, b):
    """Return Y = A B over the last two axes, with the gradients Ā = Ȳ Bᵀ and B̄ = Aᵀ Ȳ.

    Leading axes broadcast. A vector on the left counts as a row, and a vector on the right as a
    column. The result does not have this additional axis. Raises ValueError if the shapes do not
    fit.
    """
    try:
        if type(a) is type(b) is np.ndarray and a.ndim == 2 == b.ndim:
            return gemm(a, b)  # the same product, but np.matmul takes twice as long to start
        return np.matmul(a, b)
    except ValueError as error:
        raise _misfit(np.shape(a), np.shape(b), error) from None


def _misfit(a, b, error):
    """Return the error for a product whose axes do not fit."""
    if not a or not b:
        return ValueError(
            f"matmul: a and b must have an axis, got shapes {a} and {b}. Use * for numbers"
        )
    rows = b[-2] if len(b) > 1 else b[0]
    if a[-1] == rows:  # the leading axes are the cause
        return ValueError(f"matmul: the leading axes of {a} and {b} do not broadcast")
    fits, axis = "", "the last but one" if len(b) > 1 else "the only axis"
    if len(a) == len(b) == 2:
        fits = " (x @ y.T would fit)" if a[1] == b[1] else " (x.T @ y would fit)" * (a[0] == b[0])
    return ValueError(
        f"matmul: {a} @ {b} sums over the last axis of the first, of length {a[-1]}, and {axis} "
        f"of the second, of length {rows}. The lengths must be equal{fits}"
    )


def _matmul_left(g, y, a, b):
    if a.ndim == b.ndim == 2:
        return gemm(g, b.T)
    if b.ndim == 1:  # y = A b: [..., i] from [..., i, k] and [k]
        return np.expand_dims(g, -1) * b if a.ndim > 1 else g * b
    if a.ndim == 1:  # y = a B: [..., j] from [k] and [..., k, j]
        return np.matmul(b, np.expand_dims(g, -1))[..., 0]
    return np.matmul(g, _t(b))


def _matmul_right(g, y, a, b):
    if a.ndim == b.ndim == 2:
        return gemm(a.T, g)
    if a.ndim == 1:
        return np.expand_dims(a, -1) * np.expand_dims(g, -2) if b.ndim > 1 else g * a
    if b.ndim == 1:
        return np.matmul(_t(a), np.expand_dims(g, -1))[..., 0]
    return np.matmul(_t(a), g)


matmul.defvjp(_matmul_left, _matmul_right)


@implements(np.dot)
def dot(a, b):
    """Return Σ aᵢbᵢ for vectors and A B for matrices.

    With more axes, the products are summed over the last axis of a and the last but one of b. If a
    or b is a single number, the result is their product, element by element.
    """
    a, b = as_tensor(a), as_tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    if b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, (-1, -2))


@implements(np.vdot)
def vdot(a, b):
    """Return Σ aᵢbᵢ over all elements of a and b, in reading order."""
    return dot(np.reshape(as_tensor(a), -1), np.reshape(as_tensor(b), -1))


@implements(np.inner)
def inner(a, b):
    """Return Σₖ aₖbₖ over the last axes of a and b, or a · b if one of them is a single number."""
    a, b = as_tensor(a), as_tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, (-1, -1))


@implements(np.outer)
def outer(a, b):
    """Return yᵢⱼ = aᵢ bⱼ for the flattened a and b."""
    return np.reshape(as_tensor(a), (-1, 1)) * np.reshape(as_tensor(b), (1, -1))


@implements(np.tensordot)
def tensordot(a, b, axes=2):
    """Return the sums of products over pairs of axes.

    `axes` is the number n of pairs, which are the last n axes of a and the first n of b, or two
    lists (axes of a, axes of b) of equal length. Raises ValueError if the axes of a pair do not
    have the same length.
    """
    a, b = as_tensor(a), as_tensor(b)
    if np.isscalar(axes):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ValueError(
                f"tensordot: expected 0 <= axes <= {min(a.ndim, b.ndim)}, the smaller number of "
                f"axes of the shapes {a.shape} and {b.shape}, got axes={axes}"
            )
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    axes_a, axes_b = [list(axes_of(x, s)) for x, s in ((a, axes[0]), (b, axes[1]))]
    lengths = [a.shape[i] for i in axes_a], [b.shape[j] for j in axes_b]
    if lengths[0] != lengths[1]:
        raise ValueError(
            f"tensordot: the axes {axes_a} of a {a.shape} have lengths {lengths[0]}, but the axes "
            f"{axes_b} of b {b.shape} have lengths {lengths[1]}. They must be equal"
        )
    letters = iter(string.ascii_letters)
    in_a = [next(letters) for _ in range(a.ndim)]
    in_b = [next(letters) for _ in range(b.ndim)]
    for i, j in zip(axes_a, axes_b, strict=True):
        in_b[j] = in_a[i]
    out = [c for i, c in enumerate(in_a) if i not in axes_a]
    out += [c for j, c in enumerate(in_b) if j not in axes_b]
    return einsum(f"{''.join(in_a)},{''.join(in_b)}->{''.join(out)}", a, b)


@implements(np.kron)
def kron(a, b):
    """Return the Kronecker product, a matrix of the blocks aᵢⱼ b.

    If a or b has fewer axes than the other, axes of length 1 are added in front.
    """
    a, b = as_tensor(a), as_tensor(b)
    n = max(a.ndim, b.ndim)
    a_shape, b_shape = ((1,) * (n - x.ndim) + x.shape for x in (a, b))
    a = np.reshape(a, tuple(length for m in a_shape for length in (m, 1)))  # [m, 1, m', 1, …]
    b = np.reshape(b, tuple(length for m in b_shape for length in (1, m)))  # [1, n, 1, n', …]
    return np.reshape(a * b, tuple(i * j for i, j in zip(a_shape, b_shape, strict=True)))


# ---------------------------------------------------------------- einsum


@implements(np.einsum)
def einsum(subscripts, *operands, optimize=True):
    """Return the sum of products by index letters, so einsum("bhtd,bhsd->bhts", q, k) is Σ_d q k.

    Letters that the output lacks are summed, and "..." means leading axes, which broadcast. Without
    "->", the output has the letters that occur once, in alphabetical order. `optimize` has no
    effect, because the order of the products is always chosen by their cost. The gradient of an
    operand is an einsum of ȳ and all other operands, with the letters of this operand as output.

    Raises TypeError if the subscripts are not a string, and ValueError if they do not fit the
    operands.
    """
    if not isinstance(subscripts, str):
        raise TypeError(
            "einsum of Tensors: lists of numbers as indices have no derivative rule. Write the "
            "indices as a string, einsum('ij,jk->ik', a, b)"
        )
    operands = [as_tensor(x) for x in operands]
    inputs, output = _explicit(subscripts, tuple([x.ndim for x in operands]))
    inputs = list(inputs)
    for i, letters in enumerate(inputs):
        operands[i], inputs[i] = _diagonals(operands[i], letters)
    _check_lengths(operands, inputs, subscripts)
    return _einsum(*operands, inputs=tuple(inputs), output=output)


@of_whole_numbers
@primitive
def _einsum(*xs, inputs, output):
    return contract(inputs, output, xs)


@_einsum.defvjp_joint
def _einsum_rule(g, y, *xs, inputs, output):
    gradients = []
    for i, x in enumerate(xs):
        others = [z for j, z in enumerate(xs) if j != i]
        letters = [s for j, s in enumerate(inputs) if j != i]
        # A letter that only this operand has was summed over, so its gradient is constant along it.
        alone = [c for c in inputs[i] if c not in output and not any(c in s for s in letters)]
        if alone:
            letters.append("".join(alone))
            others.append(np.ones([x.shape[inputs[i].index(c)] for c in alone], x.dtype))
        terms, operands = [output, *letters], [g, *others]
        if all(type(z) is np.ndarray for z in operands):
            x_bar = contract(terms, inputs[i], operands)
        else:  # the graph is recorded for a second derivative
            x_bar = np.einsum(f"{','.join(terms)}->{inputs[i]}", *operands)
        if (
            x_bar.shape != x.shape
        ):  # where only x is longer than 1, the gradient is equal along the axis
            x_bar = np.broadcast_to(x_bar, np.broadcast_shapes(x_bar.shape, x.shape))
        gradients.append(x_bar)
    return gradients


@lru_cache(maxsize=4096)
def _explicit(subscripts, ndims):
    """Return checked input and output letters without spaces, dots and implied parts."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ndims):
        raise ValueError(
            f"einsum: expected {len(inputs)} operand{'s' * (len(inputs) != 1)} for {subscripts!r}, "
            f"got {len(ndims)}. Write the letters of each operand, separated by commas"
        )
    free = [c for c in reversed(string.ascii_letters) if c not in text]
    n_dots = [n - len(s.replace("...", "")) for s, n in zip(inputs, ndims, strict=True)]
    for s, n, extra in zip(inputs, ndims, n_dots, strict=True):
        if extra < 0 or (extra > 0 and "..." not in s):
            raise ValueError(
                f"einsum: {s!r} in {subscripts!r} does not fit an operand with {n} axes. Write one "
                "letter for each axis"
            )
    dots = "".join(
        free[: max([n for s, n in zip(inputs, n_dots, strict=True) if "..." in s] or [0])]
    )
    inputs = [s.replace("...", dots[len(dots) - n :]) for s, n in zip(inputs, n_dots, strict=True)]
    if not arrow:
        once = [c for c in sorted(set(left) - set(".,")) if left.count(c) == 1]
        output = "..." * ("..." in left) + "".join(once)
    output = output.replace("...", dots)
    letters = set("".join(inputs))
    strange = sorted(c for c in letters | set(output) if not (c.isalpha() and c.isascii()))
    if strange:
        raise ValueError(
            f"einsum: {strange[0]!r} in {subscripts!r} is not a letter from a to z. Write indices "
            "like 'ij,jk->ik'"
        )
    if not set(output) <= letters:
        new = min(set(output) - letters)
        raise ValueError(
            f"einsum: no operand of {subscripts!r} has the output letter {new!r}. Give it to an "
            "operand, or leave it out"
        )
    if len(set(output)) < len(output):
        raise ValueError(
            f"einsum: an output letter of {subscripts!r} is repeated. Write each output letter once"
        )
    return tuple(inputs), output


def _diagonals(x, letters):
    """Return (x, letters) with a diagonal for each repeated letter, so that 'iij' becomes 'ji'."""
    for c in letters:
        while letters.count(c) > 1:
            i, n = letters.index(c), letters.rindex(c)
            if x.shape[i] != x.shape[n]:
                raise ValueError(
                    f"einsum: index {c} has lengths {x.shape[i]} and {x.shape[n]} in the same "
                    "operand. Axes with the same letter must have the same length"
                )
            x, letters = (
                diagonal(x, 0, i, n),
                letters[:i] + letters[i + 1 : n] + letters[n + 1 :] + c,
            )
    return x, letters


def _check_lengths(xs, inputs, subscripts):
    lengths = {}
    for x, s in zip(xs, inputs, strict=True):
        for c, n in zip(s, x.shape, strict=True):
            if lengths.setdefault(c, n) != n and 1 not in (lengths[c], n):
                axis = f"index {c}" if c in subscripts else 'an axis of "..."'
                raise ValueError(
                    f"einsum: {axis} has length {lengths[c]} in one operand and {n} in another. "
                    "Axes with the same letter must have the same length, or length 1"
                )
            lengths[c] = n if lengths[c] == 1 else lengths[c]


def contract(inputs, output, xs):
    """Return an einsum of the plain arrays xs, computed as matrix products of pairs of operands.

    `inputs` are the letters of each operand, and `output` are the letters of the result.
    """
    inputs, xs = list(inputs), list(xs)
    for pair in _order(tuple(inputs), output, tuple(x.shape for x in xs)):
        if len(pair) == 1:
            break
        j, i = sorted(pair, reverse=True)
        b, a, in_b, in_a = xs.pop(j), xs.pop(i), inputs.pop(j), inputs.pop(i)
        rest = set("".join(inputs)) | set(output)
        keep = [c for c in dict.fromkeys(in_a + in_b) if c in rest]
        target = output if not inputs else "".join(keep)
        xs.append(_contract_two(in_a, in_b, target, a, b))
        inputs.append(target)
    return xs[0] if inputs[0] == output else np.einsum(f"{inputs[0]}->{output}", xs[0])


@lru_cache(maxsize=4096)
def _order(inputs, output, shapes):
    if len(inputs) <= 2:
        return [tuple(range(len(inputs)))]
    dummies = [np.broadcast_to(np.float32(0), s) for s in shapes]
    path = np.einsum_path(f"{','.join(inputs)}->{output}", *dummies, optimize="greedy")[0][1:]
    *pairs, last = path  # the last step may contract all remaining operands together
    return [*pairs, *[(0, 1)] * (len(last) - 1)]


def _contract_two(in_a, in_b, output, a, b):
    """Contract one pair as a batched matmul: [batch, rows, inner] @ [batch, inner, columns]."""
    (sum_a, in_a), (sum_b, in_b), layout = _pair(in_a, in_b, output, a.shape, b.shape)
    a, b = a.sum(axis=sum_a) if sum_a else a, b.sum(axis=sum_b) if sum_b else b
    if layout is None:
        return np.einsum(f"{in_a},{in_b}->{output}", a, b)
    (axes_a, shape_a), (axes_b, shape_b), (shape, axes) = layout
    y = a.transpose(axes_a).reshape(shape_a) @ b.transpose(axes_b).reshape(shape_b)
    return y.reshape(shape).transpose(axes)


@lru_cache(maxsize=4096)
def _pair(in_a, in_b, output, shape_a, shape_b):
    """Return how to contract two operands a and b as a product of matrices.

    in_a and in_b are the letters of the operands, and shape_a and shape_b their shapes. The result
    has three parts: (axes of letters that only a has, remaining letters of a), the same for b, and
    the axes and shapes of the matrices and of their product. The third part is None if there are no
    rows, no columns or no inner axis, because this is not a matrix product and NumPy's loops are
    faster, or if an axis of length 1 broadcasts.
    """
    lengths = {}
    for c, n in [*zip(in_a, shape_a, strict=True), *zip(in_b, shape_b, strict=True)]:
        if lengths.setdefault(c, n) != n:  # an axis of length 1 broadcasts, so NumPy computes it
            return ((), in_a), ((), in_b), None
    left_a, left_b = _left(in_a, in_b, output), _left(in_b, in_a, output)
    in_a, in_b = left_a[1], left_b[1]
    batch = [c for c in output if c in in_a and c in in_b]
    rows = [c for c in output if c in in_a and c not in in_b]
    columns = [c for c in output if c in in_b and c not in in_a]
    inner = [c for c in in_a if c in in_b and c not in output]
    if not (rows and columns and inner):
        return left_a, left_b, None

    def laid_out(letters, *groups):
        axes = tuple([letters.index(c) for group in groups for c in group])
        sizes = [[lengths[c] for c in group] for group in groups]
        return axes, (*sizes[0], *[math.prod(s) for s in sizes[1:]])

    letters = [*batch, *rows, *columns]
    product = tuple([lengths[c] for c in letters]), tuple([letters.index(c) for c in output])
    return (
        left_a,
        left_b,
        (laid_out(in_a, batch, rows, inner), laid_out(in_b, batch, inner, columns), product),
    )


def _left(letters, others, output):
    """Return (axes whose letter only this operand has, the letters without these axes)."""
    alone = tuple([i for i, c in enumerate(letters) if c not in others and c not in output])
    return alone, "".join(c for i, c in enumerate(letters) if i not in alone)


# ---------------------------------------------------------------- matrices as wholes


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Return the norm √Σx² of all elements, or of the vectors along `axis`.

    For vectors, `ord` may be a number p for (Σ|x|ᵖ)^(1/p), inf or -inf for the largest or smallest
    |x|, or 0 for the number of nonzero x, which has the gradient 0. At the zero vector, the norm
    has a kink, and the gradient is 0 there instead of NaN.

    A pair of axes selects matrices, for which `ord` must be None or "fro", and the norm is the root
    of the sum of squares. Raises NotImplementedError for other norms of matrices.
    """
    matrices = len(axis) > 1 if isinstance(axis, tuple) else axis is None and x.ndim > 1
    if (isinstance(ord, str) and ord != "fro") or (matrices and ord not in (None, "fro")):
        raise NotImplementedError(
            f"np.linalg.norm of Tensors: ord={ord!r} is not implemented for "
            f"{'matrices' if matrices else 'vectors'}. "
            + (
                "Pass a single axis= for norms of vectors, or compute the norm of a matrix from "
                "its singular values np.linalg.svd(x, compute_uv=False)"
                if matrices
                else "Pass a number, np.inf or -np.inf"
            )
        )
    if ord in (None, 2, "fro"):
        return _root(reduce_sum(x * x, axis, keepdims), 2)
    if ord == np.inf:
        return reduce_max(np.absolute(x), axis, keepdims)
    if ord == -np.inf:
        return reduce_min(np.absolute(x), axis, keepdims)
    if ord == 0:
        return reduce_sum(np.not_equal(x, 0).astype(x.dtype), axis, keepdims)
    if ord == 1:
        return reduce_sum(np.absolute(x), axis, keepdims)
    return _root(reduce_sum(np.absolute(x) ** ord, axis, keepdims), ord)


def _root(s, n):
    """Return ⁿ√s, with the slope 0 at s = 0, where an infinite slope would cause 0 · inf = NaN."""
    zero = np.equal(to_array(s), 0)
    s = np.where(zero, 1, s)
    return np.where(zero, 0, np.sqrt(s) if n == 2 else s ** (1 / n))


@implements(np.linalg.inv)
@primitive
def inv(x):
    """Return Y = X⁻¹ over the last two axes, with the gradient X̄ = -Yᵀ Ȳ Yᵀ."""
    return np.linalg.inv(x)


inv.defvjp(lambda g, y, x: -(_t(y) @ g @ _t(y)))


@implements(np.linalg.det)
@primitive
def det(x):
    """Return y = det X over the last two axes, with the gradient X̄ = ȳ y X⁻ᵀ.

    If X is singular or has at most three rows, the gradient is computed from the cofactors, ȳ
    (-1)ⁱ⁺ʲ det Xᵢⱼ, where Xᵢⱼ is X without row i and column j. Since det is a polynomial, it has a
    gradient everywhere.
    """
    return np.linalg.det(x)


def _det_rule(g, y, x):
    n = x.shape[-1]
    if n > 3:
        try:
            return np.expand_dims(g * y, (-1, -2)) * _t(np.linalg.inv(x))
        except np.linalg.LinAlgError:  # the matrix is singular
            pass
    i = np.arange(n)
    others = np.array([np.delete(i, j) for j in i], int).reshape(n, max(n - 1, 0))
    minors = x[..., others[:, None, :, None], others[None, :, None, :]]
    signs = np.where((i[:, None] + i) % 2, -1, 1).astype(x.dtype)
    return np.expand_dims(g, (-1, -2)) * signs * np.linalg.det(minors)


det.defvjp(_det_rule)


@primitive
def log_abs_det(x):
    """Return y = ln |det X| of an invertible matrix, with the gradient X̄ = ȳ X⁻ᵀ."""
    return np.linalg.slogdet(x)[1]


def _log_abs_det_rule(g, y, x):
    try:
        return np.expand_dims(g, (-1, -2)) * _t(np.linalg.inv(x))
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(
            "slogdet: the matrix is singular, so log |det| is -inf and its slope infinite. Use "
            "np.linalg.det, which has a gradient there, or add a small multiple of the identity, x "
            "+ 1e-6 * np.eye(n)"
        ) from None


log_abs_det.defvjp(_log_abs_det_rule)


@implements(np.linalg.slogdet)
def slogdet(x):
    """Return (sign of det X, ln |det X|), computed without over- or underflow.

    The sign has no gradient. For a singular X, the result is (0, -inf), and `backward` raises
    LinAlgError.
    """
    sign_and_log = np.linalg.slogdet(to_array(x))
    return type(sign_and_log)(Tensor(sign_and_log[0]), log_abs_det(x))


@implements(np.linalg.cholesky)
@primitive
def cholesky(x):
    """Return the lower triangular L with L Lᵀ = X, for a symmetric positive definite X.

    The gradient is X̄ = ½ (S + Sᵀ) with S = L⁻ᵀ Φ(Lᵀ L̄) L⁻¹, where Φ keeps the elements below the
    diagonal and half of the diagonal (I. Murray, arXiv:1602.07527). As in NumPy, only the lower
    triangle of X is read.
    """
    return np.linalg.cholesky(x)


def _cholesky_rule(g, y, x):
    half = np.tril(np.ones(x.shape[-2:], x.dtype)) - np.eye(x.shape[-1], dtype=x.dtype) / 2
    inverse = np.linalg.inv(y)
    s = _t(inverse) @ (half * (_t(y) @ g)) @ inverse
    return (s + _t(s)) / 2


cholesky.defvjp(_cholesky_rule)


@implements(np.linalg.solve)
def solve(a, b):
    """Return x with a x = b for square matrices a [..., N, N] and b [N] or [..., N, K].

    x is computed as a⁻¹ b, which is accurate enough for small exercises.
    """
    return matmul(inv(as_tensor(a)), b)
