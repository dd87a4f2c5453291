"""Cut arrays into batches, and split them into training and test sets."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator


def batches(*arrays, batch_size=32, shuffle=True, rng=None, drop_last=False):
    """Cut arrays into batches of matching examples, in random order unless shuffle=False.

        for x, y in data.batches(images, labels, batch_size=64, rng=0): ...

    A batch is a tuple with one array [batch_size, ...] for each given array, even if there is only
    one. The `len()` of the result is the number of batches.

    Args:
        arrays       arrays with the N examples on the first axis [N, ...]. A list counts as one
                     array
        batch_size   number of examples in a batch. The last batch is shorter if batch_size does not
                     divide N
        shuffle      False: the examples stay in their order
        rng          seed or numpy.random.Generator, or None for the default generator. Each epoch
                     has a new order
        drop_last    True: a shorter last batch is omitted

    Returns:
        a `Batches`. Iterate over it once in each epoch

    Raises:
        TypeError: no array is given, or an argument is a tuple of arrays or a list of arrays of
            different shapes
        ValueError: an array has no axis, the arrays have different lengths or are empty, batch_size
            is not a whole number >= 1, or drop_last leaves no batch
    """
    return Batches(arrays, batch_size, shuffle, rng, drop_last)


class Batches:
    """The batches that `batches` returns. A loop over all of them is one epoch.

    Args:
        arrays       tuple of the arrays given to `batches`
        batch_size   number of examples in a batch
        shuffle      False: the examples stay in their order
        rng          as in `batches`
        drop_last    True: a shorter last batch is omitted

    Raises:
        TypeError: as in `batches`
        ValueError: as in `batches`
    """

    def __init__(self, arrays, batch_size, shuffle, rng, drop_last):
        self.arrays, self.n = _same_length("batches", arrays)
        if not _is_whole(batch_size) or batch_size < 1:
            raise ValueError(f"batches: batch_size must be a whole number >= 1, got {batch_size!r}")
        if drop_last and batch_size > self.n:
            raise ValueError(
                f"batches: drop_last=True leaves no batch, because batch_size={batch_size} is "
                f"larger than the number of examples ({self.n}). Choose a smaller batch_size"
            )
        self.batch_size, self.shuffle, self.drop_last = int(batch_size), shuffle, drop_last
        self.rng = generator(rng)

    def __len__(self):
        if self.drop_last:
            return self.n // self.batch_size
        return -(-self.n // self.batch_size)  # rounded up

    def __iter__(self):
        order = self.rng.permutation(self.n) if self.shuffle else np.arange(self.n)
        for i in range(len(self)):
            chosen = order[i * self.batch_size : (i + 1) * self.batch_size]
            yield tuple([a[chosen] for a in self.arrays])

    def __repr__(self):
        shapes = ", ".join([f"{list(a.shape)} {a.dtype}" for a in self.arrays])
        how = "shuffled" if self.shuffle else "in order"
        return f"batches of {self.batch_size}, {how}, {len(self)} per epoch, from {shapes}"


def split(*arrays, held_out=0.2, rng=None):
    """Hold out random examples, and return two tuples of arrays, (train, test).

        (x, y), (x_test, y_test) = data.split(images, labels, held_out=0.2, rng=0)

    Args:
        arrays     arrays with the N examples on the first axis [N, ...]. A list counts as one array
        held_out   fraction (a float, such as 0.2) or number (an integer, such as 360) of the
                   examples to hold out for the test
        rng        seed or numpy.random.Generator, or None for the default generator. The same seed
                   holds out the same examples

    Returns:
        (train, test), two tuples with one array for each given array, even if there is only one.
        The order is random, and matching examples stay together

    Raises:
        TypeError: no array is given, or an argument is a tuple of arrays or a list of arrays of
            different shapes
        ValueError: an array has no axis, the arrays have different lengths or fewer than two
            examples, or held_out is not a number that leaves an example in each part
    """
    arrays, n = _same_length("split", arrays)
    if _is_whole(held_out):
        k = int(held_out)
    elif isinstance(held_out, float | np.floating) and 0 < held_out < 1:
        k = round(n * float(held_out))
    else:
        k = 0
    if n == 1:
        raise ValueError(
            "split: there is only 1 example (the length of the first axis), so it cannot be split. "
            "Write split(x, y, ...), with the examples on the first axis of each array"
        )
    if not 0 < k < n:
        raise ValueError(
            f"split: expected a fraction 0 < held_out < 1 or an integer 0 < held_out < {n}, "
            f"with one or more of the {n} examples in each part, got held_out={held_out!r}"
        )
    order = generator(rng).permutation(n)
    return tuple([a[order[k:]] for a in arrays]), tuple([a[order[:k]] for a in arrays])


def _same_length(name, arrays):
    """Return the arguments of the function `name` as arrays, and their number of examples."""
    for a in arrays:
        if isinstance(a, list | tuple) and len(a) and all(np.ndim(to_array(v)) for v in a):
            if isinstance(a, tuple):
                raise TypeError(
                    f"{name}: expected arrays one by one, got a tuple of length {len(a)}. Write "
                    f"{name}(x, y, ...), with the options by name"
                )
            if len({np.shape(to_array(v)) for v in a}) > 1:
                raise TypeError(
                    f"{name}: expected arrays one by one, got a list with entries of different "
                    f"shapes. Write {name}(x, y, ...), or pad token ids with tokenizers.padded"
                )
    arrays = tuple([np.asarray(to_array(a)) for a in arrays])
    option = {"batches": "batch_size=32", "split": "held_out=0.2"}[name]
    if not arrays:
        raise TypeError(f"{name}: expected at least one array, got none. Write {name}(x, y)")
    for i, a in enumerate(arrays):
        if a.ndim == 0:
            kind = "a single number" if a.dtype.kind in "fiubc" else f"a {type(a.item()).__name__}"
            raise ValueError(
                f"{name}: array {i} is {kind}, so it has no axis of examples. Pass arrays "
                f"[N, ...], and options by name, such as {option}"
            )
    lengths = [len(a) for a in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"{name}: all arrays must have the same number of examples (length of the first axis), "
            f"got {', '.join(map(str, lengths))}"
        )
    if lengths[0] == 0:
        raise ValueError(
            f"{name}: there are no examples, because the first axis has length 0. Pass at least "
            f"{'two' if name == 'split' else 'one'}"
        )
    return arrays, lengths[0]


def _is_whole(n):
    return isinstance(n, int | np.integer) and not isinstance(n, bool | np.bool_)
