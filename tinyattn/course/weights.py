"""Networks that full runs trained, which are shipped with the lectures and loaded in class.

Networks that are compared must be trained to the end, which takes minutes or hours. So the full run
trains them once and keeps them here, and the notebook in class begins with the converged networks.
A short training next to them shows how they got there.
"""

import json
import math
from pathlib import Path

import numpy as np

from tinyattn.course.changes import changes_of
from tinyattn.course.claims import full
from tinyattn.course.project import WEIGHTS, CourseError, find_root
from tinyattn.data.byte_planes import bytes_apart, bytes_together
from tinyattn.engine.autograd import Tensor
from tinyattn.io import load, save

# float16 halves the files, and the networks of these lectures predict the same
SHIPPED = np.dtype("<f2")


def trained(name, module, train, *, root=None):
    """Load the weights of the full run into the module, and return the record of its training.

    A full run (`tinyattn full`) calls `train`, rounds the weights to the 16 bits in which they are
    shipped, and writes the file. Therefore, the experiments use the same weights that are shipped.
    Every other run reads the file, and prints a message if a student has changed `train`.

    Args:
        name     name of the file, which begins with the number of the lecture:
                 "05_numbers" means lectures/weights/05_numbers.safetensors
        module   any nn.Module, whose parameters and buffers are replaced
        train    function without arguments that trains the module and returns a dictionary of
                 arrays to show, such as {"loss": [...]}, or None if there are none. Only a full run
                 calls it
        root     folder of the project. If None, look for it in the working folder and above

    Returns:
        the dictionary of arrays that `train` returned in the full run, or {} if there are none

    Raises:
        CourseError: the file is missing or does not fit the module, except in a full run. The error
            names the command that creates the file
        CourseError: there is no folder of the project
    """
    root = find_root() if root is None else Path(root)
    path = root / WEIGHTS / f"{name}.safetensors"
    lecture = name[:2]
    if full():
        shown = {k: np.asarray(v) for k, v in (train() or {}).items()}
        state = {k: _halves(v) for k, v in as_shipped(module).state_dict().items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, packed(_named("module", state) | _named("shown", shown)))
        return shown
    if not path.is_file():
        raise CourseError(
            f"the trained weights {WEIGHTS.as_posix()}/{path.name} do not exist. A full run "
            f"creates them: tinyattn full --again {lecture}"
        )
    tensors = unpacked(load(path))
    try:
        module.load_state_dict(_part("module", tensors))
    except (KeyError, ValueError) as error:
        raise CourseError(
            f"the trained weights {WEIGHTS.as_posix()}/{path.name} belong to a different network "
            f"({error}). If you changed the network, call train() instead of "
            "course.trained(name, module, train), or replace the weights of the lecture: "
            f"tinyattn full --again {lecture}"
        ) from None
    changed = changes_of(root, lecture, train)
    if changed:
        print(
            f"Your change is not in these results, which were recorded without it: "
            f"{'; '.join(changed)}. To see what it does, call the training itself instead of "
            f"course.trained(name, module, training), which may take long."
        )
    return _part("shown", tensors)


def as_shipped(module):
    """Round the weights of a module to the 16 bits in which they are shipped, and return it.

    Use this for networks that a full run compares but does not ship, so that their weights are as
    precise as the shipped ones.

    Args:
        module   any nn.Module. Its parameters and buffers are rounded in place and keep their
                 dtype. Whole numbers and bools do not change

    Returns:
        the same module
    """
    module.load_state_dict({k: _halves(v) for k, v in module.state_dict().items()})
    return module


def _halves(value):
    """Return a parameter or buffer as an array, in float16 unless it contains integers or bools."""
    array = np.asarray(value.data if isinstance(value, Tensor) else value)
    return array.astype(SHIPPED) if array.dtype.kind == "f" else array


def packed(arrays):
    """Return {name: array} as it is stored, with all float16 numbers in one array of bytes [2, N].

    In the result, "halves" is this array, and "layout" contains the names and shapes as JSON. The
    upper bytes of weights are similar, so a compressed package becomes 7% smaller. The arrays
    are ordered by name, so a full run that finds the same weights again writes the same file.
    """
    arrays = dict(sorted(arrays.items()))
    halves = {name: a for name, a in arrays.items() if np.asarray(a).dtype == SHIPPED}
    rest = {name: a for name, a in arrays.items() if name not in halves}
    layout = json.dumps({name: a.shape for name, a in halves.items()}).encode()
    numbers = np.concatenate([np.zeros(0, SHIPPED), *(a.ravel() for a in halves.values())])
    return rest | {"layout": np.frombuffer(layout, np.uint8), "halves": bytes_apart(numbers)}


def unpacked(stored):
    """Return the {name: array} that was given to `packed`, from its result `stored`."""
    stored = dict(stored)
    layout = json.loads(bytes(stored.pop("layout")))
    numbers, found, start = bytes_together(stored.pop("halves"), SHIPPED), {}, 0
    for name, shape in layout.items():
        stop = start + math.prod(shape)
        found[name], start = numbers[start:stop].reshape(shape), stop
    return found | stored


def _named(part, arrays):
    return {f"{part}.{name}": array for name, array in arrays.items()}


def _part(part, tensors):
    start = f"{part}."
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}
