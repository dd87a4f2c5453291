"""A compilation that takes long says so: once in a process, on one line."""

import sys
import threading

try:
    from numba.core import event
except ImportError:  # no Numba, or one without events: then compiling is silent
    event = None

AFTER = 1.0  # seconds
TEXT = (
    "tinyattn: compiling the kernel {} for this machine; that is once, later runs find it on the "
    "disk (`tinyattn warm` compiles all that lectures use)"
)

_said = False
_waiting = threading.local()  # .timers: one for each compilation of this thread, the inner ones too


def _say(name):
    global _said
    if not _said:
        _said = True
        print(TEXT.format(name), file=sys.stderr, flush=True)


def _name(data):
    """The kernel that is compiled; None if it is not one of ours."""
    f = data["dispatcher"].py_func
    if not f.__module__.startswith("tinyattn."):
        return None
    return f"{f.__module__.rpartition('.')[2]}.{f.__name__}"


def install():
    """Let Numba tell us when it compiles; a kernel that is read from the disk is not compiled."""
    if event is None or _said:
        return

    class Announcer(event.Listener):
        def on_start(self, found):
            timers = _waiting.__dict__.setdefault("timers", [])
            name = _name(found.data) if not timers else None  # the inner ones belong to the first
            timer = threading.Timer(AFTER, _say, [name]) if name else None
            timers.append(timer)
            if timer is not None:
                timer.daemon = True  # nobody waits for it at the end of the program
                timer.start()

        def on_end(self, found):
            timer = _waiting.timers.pop()
            if timer is not None:
                timer.cancel()

    event.register("numba:compile", Announcer())
