"""The error function on arrays, which NumPy lacks, to the last digits of float64.

Below |x| = 2 the series erf x = 2/√π exp(-x²) Σ 2ⁿ x²ⁿ⁺¹ / (1·3·…·(2n+1)) has only positive
terms, so nothing cancels; above it the continued fraction of the complement converges fast.
Source: Abramowitz, Stegun 1964, 7.1.6 and 7.1.14.
"""

import numpy as np

TERMS = {"float64": (30, 40)}  # of the series, of the fraction; relative error 1e-15
FEW_TERMS = (18, 12)  # for float32 and shorter, relative error 2e-7


def erf_of(x):
    """erf of an array, in its dtype."""
    t = np.abs(x)
    n_series, n_fraction = TERMS.get(t.dtype.name, FEW_TERMS)
    small = np.minimum(t, 2)
    term = total = small
    for n in range(1, n_series):
        term = term * (2 * small * small / (2 * n + 1))
        total = total + term
    y = float(2 / np.sqrt(np.pi)) * np.exp(-small * small) * total
    large = np.maximum(t, 2)
    fraction = large
    for n in range(n_fraction, 0, -1):
        fraction = large + (n / 2) / fraction
    with np.errstate(over="ignore"):
        complement = np.exp(-large * large) / (fraction * float(np.sqrt(np.pi)))
    y = np.where(t < 2, y, 1 - complement)
    return np.copysign(np.where(np.isnan(t), t, y), x)
