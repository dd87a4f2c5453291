"""Does the image for a JupyterHub build, and does it start with the course in it?

    python -m tests.scripts.image

It needs a running Docker. Without one, nothing is tried, and the script says so.
"""

import shutil
import subprocess
import sys

from tests import ROOT

IMAGE = "tinyattn-tried"
# what a student would do first: the copies are there, and a lecture computes with a kernel
TRIED = (
    "ls ~/tinyattn-course/workbook/00_autograd_engine.ipynb"
    " && tinyattn doctor"
    " && cd ~/tinyattn-course && tinyattn class 05 --run"
)


def main():
    if not docker("info"):
        print("the image was not tried: Docker does not run here")
        return 0
    if not docker("build", "-t", IMAGE, str(ROOT), show=True):
        return 1
    started = docker("run", "--rm", IMAGE, "start.sh", "bash", "-c", TRIED, show=True)
    docker("image", "rm", IMAGE)
    print("the image builds and has the course" if started else "the image does not start")
    return 0 if started else 1


def docker(*arguments, show=False):
    """Return whether the command of Docker succeeded."""
    if shutil.which("docker") is None:
        return False
    output = None if show else subprocess.DEVNULL
    return subprocess.run(["docker", *arguments], stdout=output, stderr=output).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
