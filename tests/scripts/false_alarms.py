"""Check that `check.watch` gives no warning for any training run of lectures and homework.

    python -m tests.scripts.false_alarms          all of them
    python -m tests.scripts.false_alarms 03 hw06  some

All cells run in quick sizes. Training runs that belong only to full runs are executed for their
first steps. A training loop that calls neither `training.fit` nor `training.fit_steps` is watched
as if it were in a block of `check.watch`. The script prints the number of training runs, and each
warning with its line. The exit code is 1 if there are warnings.
"""

import sys
import warnings

from coursekit.build.execute import CellError, execute, namespace, surroundings, wanted
from coursekit.build.text import read_source
from tests import ROOT
from tinyattn import check, course, optim, training
from tinyattn.check.watch import LOSSES, _Watcher
from tinyattn.course import project

STEPS = 40  # steps of a full run's training, but LOSSES steps for a hand-written loop


class Enough(Exception):
    """A training in its own words was watched for long enough."""


class Held:
    """The model of a training in its own words: what its optimizer holds."""

    def __init__(self, optimizer):
        self.of = optimizer

    def parameters(self):
        """Return the parameters of the optimizer."""
        return [p for group in self.of.param_groups for p in group["params"]]


class Watching:
    """Watch every optimizer that is made, one at a time, and shorten the trainings of full runs."""

    def __init__(self):
        self.watched = {"fit": 0, "fit_steps": 0, "its own loop": 0}
        self.short = self.inside = 0  # nesting depth in a full run's training, in fit
        self.current = None
        self.unfinished = []
        self.saved = (
            optim.Optimizer.__init__,
            training.fit,
            training.fit_steps,
            course.trained,
        )

    def __enter__(self):
        init, fit, fit_steps, trained = self.saved

        def made(optimizer, *args, **options):
            init(optimizer, *args, **options)
            if not self.inside:
                self.watch(optimizer)

        def within(name, run):
            def counted(*args, **options):
                self.stop()
                self.watched[name] += 1
                self.inside += 1
                try:
                    return run(*args, **options)
                finally:
                    self.inside -= 1

            return counted

        def some_steps(model, loss, steps, **options):
            if not self.short or steps <= STEPS:
                return fit_steps(model, loss, steps, **options)
            first = fit_steps(model, loss, STEPS, **options)
            return [*first, *first[-1:] * (steps - STEPS)]

        def trained_and_loaded(name, module, train, **options):
            self.short += 1
            try:
                train()
            except Enough:
                self.unfinished.append(name)
            except Exception as error:  # a shortened training may not have what comes after it
                self.unfinished.append(f"{name} ({type(error).__name__}: {str(error)[:60]})")
            finally:
                self.short -= 1
                self.stop()
            return trained(name, module, train, **options)

        optim.Optimizer.__init__ = made
        training.fit = within("fit", fit)
        training.fit_steps = within("fit_steps", some_steps)
        course.trained = trained_and_loaded
        return self

    def __exit__(self, *_):
        self.stop()
        (optim.Optimizer.__init__, training.fit, training.fit_steps, course.trained) = self.saved

    def watch(self, optimizer):
        """Watch this optimizer's training from its first step on."""
        step = optimizer.zero_grad

        def begin(*args, **options):
            del optimizer.zero_grad
            self.stop()
            self.current = _Watcher(Held(optimizer), optimizer)
            self.current.start()
            self.watched["its own loop"] += 1
            limited(optimizer, self)
            return step(*args, **options)

        optimizer.zero_grad = begin

    def stop(self):
        """End the current block."""
        if self.current is not None:
            self.current.stop()
            self.current = None


def limited(optimizer, watching):
    """In a training of a full run, stop after the steps that are watched."""
    step, taken = optimizer.step, [0]

    def one(*args, **options):
        taken[0] += 1
        if watching.short and taken[0] > LOSSES:
            raise Enough
        return step(*args, **options)

    optimizer.step = one


def alarms_of(document, folder):
    """Run a lecture or homework, and return (Watching, the warnings, the cells that failed)."""
    said, failed, names = [], [], namespace()

    def note(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, check.SlipWarning):
            said.append(f"{filename}:{lineno}: {message!s}")

    with warnings.catch_warnings(), Watching() as watching, surroundings(folder):
        warnings.simplefilter("always")
        warnings.showwarning = note
        for cell in filter(wanted, read_source(document).cells):
            try:
                execute(cell, names)
            except CellError as error:
                if isinstance(error.cause, NameError) and failed:
                    continue
                failed.append(str(error).split("\n")[0])
    return watching, said, failed


def main(wanted_numbers):
    """Run the lectures and homeworks and return the number of warnings."""
    documents = [*project.lectures(ROOT), *project.homework(ROOT)]
    count = 0
    for document in documents:
        if wanted_numbers and document.number not in wanted_numbers:
            continue
        watching, said, failed = alarms_of(document, ROOT)
        numbers = ", ".join(f"{n} in {name}" for name, n in watching.watched.items())
        print(f"{document.number}: watched {numbers}; warnings: {len(said)}", flush=True)
        for line in [*said, *(f"not to the end: {name}" for name in watching.unfinished), *failed]:
            print(f"  {line}", flush=True)
        count += len(said)
    return count


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
