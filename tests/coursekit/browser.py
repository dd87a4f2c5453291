"""Pages as a browser shows them, if there is a Chromium on this machine.

All pages of a process are shown by one Chromium. Each has a context of its own, so it finds nothing
that the pages before have kept.
"""

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import tempfile
import time

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
needed = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to look at the deck with")
OPTIONS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync"
OPTIONS += " --disable-background-networking --disable-component-update --remote-debugging-pipe"
BARS = 143  # pixels of a window's height that its bars take from the page
NO_NETWORK = "127.0.0.1:9"  # a proxy that is not there
SECONDS = 120  # far more than a page takes on a busy machine
VIRTUAL = 20_000  # milliseconds, which timers pass as fast as they can be computed


def show(path, size="1280,720", until=""):
    """The page after its scripts have run, as HTML; the network is cut off.

    size: of the window, "width,height"
    until: an expression of JavaScript; the page is read when it is true, for what other processes
        of the browser, such as those of sandboxed frames, do in their own time
    """
    return chromium().show(path.as_uri(), *map(int, size.split(",")), until)


@functools.cache
def chromium():
    """The Chromium of this process, which `close` ends."""
    return Chromium()


def close():
    """End the Chromium of this process, if one was started."""
    if chromium.cache_info().currsize:
        chromium().close()
        chromium.cache_clear()


class Chromium:
    """A browser that is told what to do over two pipes, in the DevTools protocol."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="tinyattn-chromium-")
        self.sent, self.received, self.waiting = 0, bytearray(), []
        commands, self.input = os.pipe()
        self.output, answers = os.pipe()
        options = f"{OPTIONS} --proxy-server={NO_NETWORK} --user-data-dir={self.profile}"
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        # it reads from 3 and writes to 4; these two are apart from both
        commands, answers = apart(commands), apart(answers)
        pipes = [(os.POSIX_SPAWN_DUP2, commands, 3), (os.POSIX_SPAWN_DUP2, answers, 4)]
        self.pid = os.posix_spawn(
            CHROMIUM, [CHROMIUM, *options.split()], os.environ, file_actions=null + pipes
        )
        os.close(commands)
        os.close(answers)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        os.close(self.input)
        os.close(self.output)
        shutil.rmtree(self.profile, ignore_errors=True)

    def show(self, address, width, height, until):
        context = self.command("Target.createBrowserContext", proxyServer=NO_NETWORK)
        try:
            target = self.command("Target.createTarget", url="about:blank", **context)
            page = self.command("Target.attachToTarget", flatten=True, **target)["sessionId"]
            size = {"width": width, "height": height - BARS, "deviceScaleFactor": 1}
            self.command("Emulation.setDeviceMetricsOverride", page, mobile=False, **size)
            self.command("Page.enable", page)
            self.command("Page.navigate", page, url=address)
            self.event("Page.loadEventFired", page)
            end = time.monotonic() + SECONDS
            while until and not self.value(f"Boolean({until})", page):
                if time.monotonic() > end:
                    raise TimeoutError(f"{until} was not true within {SECONDS} seconds")
                time.sleep(0.02)
            until_idle = {"policy": "pauseIfNetworkFetchesPending", "budget": VIRTUAL}
            self.command("Emulation.setVirtualTimePolicy", page, **until_idle)
            self.event("Emulation.virtualTimeBudgetExpired", page)
            return self.value("document.documentElement.outerHTML", page)
        finally:
            self.command("Target.disposeBrowserContext", **context)

    def command(self, method, page=None, **parameters):
        """The result of a command of the protocol; page: the session that it is for."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        message |= {"sessionId": page} if page else {}
        os.write(self.input, json.dumps(message).encode() + b"\0")
        answer = self.message(lambda m: m.get("id") == self.sent)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def value(self, expression, page):
        """The value of an expression of JavaScript in a page."""
        code = {"expression": expression, "returnByValue": True}
        return self.command("Runtime.evaluate", page, **code)["result"]["value"]

    def event(self, method, page):
        """Wait for an event of a page, which may have come already."""
        self.message(lambda m: m.get("method") == method and m.get("sessionId") == page)

    def message(self, wanted):
        """The first message that is wanted; those that others may want are kept."""
        end = time.monotonic() + SECONDS
        while True:
            for i, message in enumerate(self.waiting):
                if wanted(message):
                    return self.waiting.pop(i)
            self.waiting += self.read(end)

    def read(self, end):
        """The messages that have come, at least one of them."""
        while b"\0" not in self.received[-(1 << 16) :]:
            if not select.select([self.output], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium has not answered for {SECONDS} seconds")
            piece = os.read(self.output, 1 << 16)
            if not piece:
                raise EOFError("Chromium has ended")
            self.received += piece
        *whole, rest = self.received.split(b"\0")
        self.received = rest
        return [json.loads(message) for message in whole]


def apart(fd):
    """The same file under a number of at least 10."""
    import fcntl  # not on Windows

    other = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return other
