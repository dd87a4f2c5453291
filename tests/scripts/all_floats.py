"""Compare the functions of the vector layer with float64 at every float32 number.

    python -m tests.scripts.all_floats                  all 2³² inputs of all functions, on one core
    python -m tests.scripts.all_floats exp --every 64   every 64th

For each function, the script prints the largest error in units of the last place, and its inputs.
The bounds are in BOUNDS and in the docstrings of the functions. The quick suite tests a sample and
the worst inputs that this script found (`tests/kernels/test_all_floats.py`).
"""

import argparse
import math
import sys
import time
from typing import NamedTuple

import numpy as np

from tinyattn.kernels import jit
from tinyattn.kernels.fast import recurrent
from tinyattn.kernels.machine.load_store import load, store
from tinyattn.kernels.machine.simd import exp, width
from tinyattn.ops.erf import erf_of

CHUNK = 1 << 20
EXP, SIGMOID, TANH, ERF = range(4)


class Bound(NamedTuple):
    """What a function promises."""

    kind: int
    lowest: float  # from here on ...
    highest: float  # ... to here the error is at most ...
    ulps: float  # ... so many units of the last place, and elsewhere at most ...
    outside: float  # ... this, as an absolute error
    worst: tuple  # inputs where it is largest


BOUNDS = {
    "exp": Bound(EXP, -87, 88, 2.0, 2e-38, ("-0x1.77f46p+1", "-0x1.868fcp+5", "0x1.4f774p+2")),
    "sigmoid": Bound(
        SIGMOID, -80, math.inf, 3.5, 2e-35, ("-0x1.0c3aep+4", "-0x1.f3cf6p+0", "-0x1.bca2p+5")
    ),
    "tanh": Bound(
        TANH,
        -math.inf,
        math.inf,
        6.5,
        0,
        ("0x1.171fp-1", "0x1.f8abcp-2", "-0x1.aa76cp-2", "0x1.152f6p+2"),
    ),
    "erf": Bound(
        ERF,
        -math.inf,
        math.inf,
        8.0,
        0,
        ("0x1.e4ec2p+1", "-0x1.e4ec2p+1", "0x1.cf3dp+0", "-0x1.cf3dp+0"),
    ),
}


@jit
def vectors(kind, y, x):
    """Compute y = f(x) with vectors. The length of x and y is a multiple of the vector's width."""
    tiny = recurrent.tiny_square(x)
    for i in range(0, len(x), width(x)):
        v = load(x, i)
        if kind == EXP:
            store(y, i, exp(v))
        elif kind == SIGMOID:
            store(y, i, recurrent.sigmoid(v))
        else:
            store(y, i, recurrent.tanh(v, tiny))


@jit
def errors(kind, ulps, y, x):
    """Compute |y - f(x)| in units of the last place of f(x), or nan if only one is nan."""
    for i in range(len(x)):
        v = np.float64(x[i])
        if kind == EXP:
            true = math.exp(v)
        elif kind == SIGMOID:
            true = 1 / (1 + math.exp(-v))
        elif kind == TANH:
            true = math.tanh(v)
        else:
            true = math.erf(v)
        found = np.float64(y[i])
        if true != true or found == true:
            ulps[i] = 0.0 if found != found or found == true else math.nan
        else:
            _, exponent = math.frexp(true)
            ulps[i] = abs(found - true) / math.ldexp(1.0, max(exponent - 24, -149))


def values(name, x):
    """Return the values of the function for an array of float32."""
    if name == "erf":
        with np.errstate(all="ignore"):
            return erf_of(x)
    padded = np.zeros(-(-len(x) // 64) * 64, np.float32)
    padded[: len(x)] = x
    y = np.empty_like(padded)
    vectors(BOUNDS[name].kind, y, padded)
    return y[: len(x)]


def check(name, x):
    """Return (largest error in units of the last place, its input, inputs that break the bound)."""
    bound, y, ulps = BOUNDS[name], values(name, x), np.empty(len(x))
    errors(bound.kind, ulps, y, x)
    inside = (x >= bound.lowest) & (x <= bound.highest) | np.isnan(x)
    beyond = x < bound.lowest
    wrong = inside & ~(ulps <= bound.ulps)
    # outside the range, results are 0 or constant, and above the highest input they overflow
    wrong |= beyond & ~(np.abs(y) <= bound.outside)
    within = np.where(inside, np.nan_to_num(ulps, nan=np.inf), 0)
    place = int(within.argmax()) if len(x) else 0
    return float(within[place]), float(x[place]), x[wrong]


def inputs(start, stop, every):
    """Return the float32 numbers with the bits start, start + every, …"""
    return np.arange(start, stop, every, dtype=np.uint64).astype(np.uint32).view(np.float32)


def run(name, every):
    """Test all inputs, and return whether the bound holds."""
    began, worst, wrong, count = time.perf_counter(), [], 0, 0
    for start in range(0, 1 << 32, CHUNK * every):
        x = inputs(start, min(start + CHUNK * every, 1 << 32), every)
        error, at, broken = check(name, x)
        worst.append((error, at))
        wrong, count = wrong + len(broken), count + len(x)
    worst = sorted(worst, reverse=True)[:4]
    print(
        f"{name}: {count:,} inputs, largest error {worst[0][0]:.3f} ulp, {wrong} break the bound "
        f"({time.perf_counter() - began:.0f} s); worst at "
        + ", ".join(float(np.float32(x)).hex() for _, x in worst),
        flush=True,
    )
    return wrong == 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(BOUNDS))
    parser.add_argument("--every", type=int, default=1, help="only every n-th input")
    options = parser.parse_args(arguments)
    fine = [run(name, options.every) for name in options.names or BOUNDS]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
