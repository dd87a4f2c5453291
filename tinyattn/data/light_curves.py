"""Light curves, the brightness of real variable stars at the times of real observations."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

FILE = Path(__file__).with_name("light_curves.npz")
TEST = 2100  # number of test stars, which are the last ones of the file (in random order)
CLASSES = (
    "RR Lyrae ab",
    "RR Lyrae c",
    "Cepheid F",
    "Cepheid 1O",
    "δ Scuti",
    "Mira",
    "semi-regular",
)


class LightCurves(NamedTuple):
    """The light curves of B stars with T observations each.

    Attributes:
        times        days from the first observation, ascending, not evenly spaced [B, T] float32
        magnitudes   relative to the mean of the star, where smaller is brighter [B, T] float32
        errors       standard deviation of the noise, in magnitudes [B, T] float32
        label        index of the class: RR Lyrae ab, RR Lyrae c, Cepheid F, Cepheid 1O, δ Scuti,
                     Mira, semi-regular [B] int64
        period       main period in days [B] float32
    """

    times: np.ndarray  # [B, T] float32: days from the first observation, not evenly spaced
    magnitudes: np.ndarray  # relative to the mean of the star, where smaller is brighter
    errors: np.ndarray  # standard deviation of the noise in the magnitudes
    label: np.ndarray  # index into CLASSES
    period: np.ndarray  # main period in days


def light_curves(part="train", length=200, rng=0, noise=True, out_of=None):
    """Load the light curves of variable stars of seven classes, 1,500 of each in total.

    The stars are real. Their periods, amplitudes and shapes come from the OGLE-III catalogue. The
    times of observation are also real. They come from five stars of the MACHO survey, each in two
    colours, with an observation every one or two nights and gaps of up to 216 days. Each curve
    combines a star with a random part of one of these ten series and with a random phase. The noise
    is normally distributed, and its standard deviation is the error of the MACHO observation. Mira
    and semi-regular stars, which in reality change from cycle to cycle, are sums of up to three
    cosines. With a different rng, the same stars are observed at different times.

    Args:
        part     "train" for 8,400 stars, "test" for 2,100 others, or "all" for all 10,500
        length   number T of observations of each star, at most 690
        rng      seed or numpy.random.Generator for times, phases and noise, or None for the default
                 generator
        noise    False: the magnitudes are exact, but `errors` is the same
        out_of   number of consecutive observations from which `length` are chosen at random, from
                 length to 690, as if a telescope observed the star only occasionally. If None, the
                 observations are consecutive, so for Mira and semi-regular stars, whose periods are
                 long, the index of an observation is nearly as informative as its time

    Returns:
        `LightCurves`, in random order of the stars

    Raises:
        TypeError: length or out_of is not a whole number
        ValueError: part is not "train", "test" or "all", or not 1 <= length <= out_of <= 690, the
            number of observations in the shortest series

    Source: tinyattn/data/SOURCES.md, with the licences.
    """
    if part not in ("train", "test", "all"):
        raise ValueError(f'light_curves: part must be "train", "test" or "all", got {part!r}')
    check_range("light_curves", whole=True, length=length, out_of=out_of, optional=("out_of",))
    rng = generator(rng)
    with np.load(FILE) as stored:
        label, fourier = stored["label"].astype(np.int64), stored["fourier"].astype(np.float64)
        ends = np.cumsum(stored["number"])
        observed = stored["times"] / 1e5, stored["errors"] / 1e3
    nights = min(np.diff(ends, prepend=0))
    given, out_of = out_of, length if out_of is None else out_of
    if not 1 <= length <= out_of <= nights:
        between, got = ("", "") if given is None else ("out_of <= ", f", out_of={out_of}")
        raise ValueError(
            f"light_curves: expected 1 <= length <= {between}{nights}, the length of the shortest "
            f"series, got length={length}{got}"
        )
    rows = {"train": slice(0, -TEST), "test": slice(-TEST, None), "all": slice(None)}[part]
    label, fourier = label[rows], fourier[:, rows]
    times, errors = _windows(observed, ends, len(label), length, out_of, rng)
    y = brightness(times, fourier, rng.random((3, len(label))))
    y = y + errors * rng.normal(size=y.shape) * noise
    f32 = (x.astype(np.float32) for x in (times, y, errors))
    return LightCurves(*f32, label, fourier[0].astype(np.float32))


def _windows(observed, ends, B, length, out_of, rng):
    """Return times (from 0) and errors [B, length] of random parts of the series in `observed`.

    The series end at the indices `ends`. A part is chosen from `out_of` consecutive observations.
    """
    which = rng.integers(len(ends), size=B)
    first = np.append(0, ends[:-1])[which]
    start = first + (rng.random(B) * (ends[which] - first - out_of + 1)).astype(int)
    index = start[:, None] + np.arange(length)
    if out_of > length:
        chosen = rng.random((B, out_of)).argsort(axis=1)[:, :length]
        index = start[:, None] + np.sort(chosen, axis=1)
    times, errors = (x[index] for x in observed)
    return times - times[:, :1], errors


def brightness(times, fourier, phase):
    """Return magnitudes [B, T] of stars at times [B, T], relative to their means, without noise.

        m(t) = Σ_k A_k/2 cos 2π(t/P_k + phase_k)        Mira, semi-regular: up to three periods
        m(t) = A_1 f(t/P_1 + phase_1)/(max f - min f)   the others: one period, with a shape
        f(x) = cos 2πx + R21 cos(4πx + φ21) + R31 cos(6πx + φ31)

    Args:
        times     times in days [B, T]
        fourier   parameters of the stars [10, B]: P_1 to P_3 in days, A_1 to A_3 in magnitudes, and
                  R21, φ21, R31, φ31 as in the OGLE-III catalogue
        phase     phases at time 0 [3, B], from 0 to 1
    """
    P, A, shape = fourier[:3], fourier[3:6], fourier[6:]
    turns = times / P[0][:, None] + phase[0][:, None]
    x = np.linspace(0, 1, 200, endpoint=False)
    range_of_f = np.ptp(_shape(x[None], shape), axis=1)[:, None]
    m = A[0][:, None] * _shape(turns, shape) / range_of_f
    for k in (1, 2):
        turns = times / np.where(P[k] > 0, P[k], 1)[:, None] + phase[k][:, None]
        m = m + A[k][:, None] / 2 * np.cos(2 * np.pi * turns)
    return m


def _shape(x, shape):
    r21, phi21, r31, phi31 = shape[:, :, None]
    return (
        np.cos(2 * np.pi * x)
        + r21 * np.cos(4 * np.pi * x + phi21)
        + r31 * np.cos(6 * np.pi * x + phi31)
    )
