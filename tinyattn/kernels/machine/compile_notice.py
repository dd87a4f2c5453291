"""Messages about compiling on standard error, each on one line and only once in a process.

They say that a compilation takes long, and whether later runs will find the machine code on the
disk.
"""

import sys
import tempfile
import threading

AFTER = 1.0  # seconds until the notice
TRIED = 1 << 18  # bytes that are written to test whether the disk accepts them
TEXT = (
    "tinyattn: compiling the kernel {} for this machine. This is done only once, because later "
    "runs find it on the disk (`tinyattn warm` compiles all that lectures use)"
)
NOT_KEPT = (
    "tinyattn: {} cannot be kept {} ({}), so each run {} again. Set NUMBA_CACHE_DIR to a folder "
    "that you may write to, on a disk with free space."
)

_said = set()
# .timers: one for each compilation of this thread, including nested ones
_waiting = threading.local()


def _say(topic, line):
    """Print a line, unless one on the same topic was printed."""
    if topic not in _said:
        _said.add(topic)
        print(line, file=sys.stderr, flush=True)


def not_kept(what, folder, error, again):
    """Report that `what` cannot be stored because of `error`, so each run does `again`.

    For example, `what` is "the compiled kernel knn.search", and `again` is "compiles it". `folder`
    is the cache folder, or None if no folder can be written to.
    """
    place, why = "on the disk", "no folder can be written to"
    if folder is not None:
        place, why = f"in {folder}", error.strerror or error
    _say(again, NOT_KEPT.format(what, place, why, again))


def kernel_not_kept(f, folder, error=None):
    """Report that the machine code of the kernel f cannot be stored in `folder`."""
    not_kept(f"the compiled kernel {_name_of(f) or f.__name__}", folder, error, "compiles it")


def _compiling(f, folder):
    """Report that the kernel f is being compiled, or that `folder` cannot store the result."""
    try:
        if folder is not None and TEXT not in _said:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(TRIED))
    except OSError as error:
        kernel_not_kept(f, folder, error)
    else:
        if folder is None:
            kernel_not_kept(f, folder)
        else:
            _say(TEXT, TEXT.format(_name_of(f)))


def _name_of(f):
    """Return the name of the kernel f for messages, or None for a function of another library."""
    if not f.__module__.startswith("tinyattn."):
        return None
    return f"{f.__module__.rpartition('.')[2]}.{f.__name__}"


def install():
    """Register a callback that Numba calls when it compiles, not when it reads from the disk."""
    try:
        from numba.core import event
    except ImportError:  # this version has no events, so compiling is silent
        return

    class Announcer(event.Listener):
        def on_start(self, start):
            timers = _waiting.__dict__.setdefault("timers", [])
            kernel = start.data["dispatcher"]
            timer = None
            # nested compilations belong to the first one
            if not timers and _name_of(kernel.py_func):
                found = [kernel.py_func, kernel.stats.cache_path]
                timer = threading.Timer(AFTER, _compiling, found)
            timers.append(timer)
            if timer is not None:
                timer.daemon = True  # the end of the program does not wait for it
                timer.start()

        def on_end(self, end):
            timer = _waiting.timers.pop()
            if timer is not None:
                timer.cancel()

    event.register("numba:compile", Announcer())
