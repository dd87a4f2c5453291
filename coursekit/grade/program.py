"""The message to a sandbox for a task: given cells, the student's cells, and the allowed names."""

import ast

from tinyattn.course.checks.code import free_names


class Program:
    """The code in a task's environment: given cells, the student's statements, allowed names."""

    def __init__(self, task, plan, code, samples=()):
        self.task, self.plan, self.code = task, plan, code
        self.samples = list(samples)
        names, given = set(plan.asked(task)), plan.given(task)
        for source in given:
            names |= free_names(ast.parse(source))
        self.own, _ = code.needed(names)

    def job(self, environment, *, light=False):
        """Return the message that fills an environment.

        With `light`, statements that may take long, such as loops, are left out.
        """
        homework = self.plan.homework
        kept = {}
        for statement in self.own:
            if not light or not statement.loops:
                kept.setdefault(statement.cell, []).append(statement.index)
        own = [
            {"place": place + 1, "source": self.code.sources[place], "keep": indices}
            for place, indices in sorted(kept.items())
        ]
        return {
            "environment": environment,
            "allow": homework.listed(self.task),
            "by_hand": self.task in homework.by_hand,
            "engine": homework.by_hand.get(self.task, []),
            "asked": sorted(self.plan.asked(self.task)),
            "given": _cells(self.plan.given(self.task)),
            "sample": _cells(self.samples),
            "own": own,
        }


def _cells(sources):
    return [{"place": i, "source": s, "keep": None} for i, s in enumerate(sources, 1)]
