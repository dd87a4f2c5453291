"""What a notebook calls: the check after a task, and the table at the end."""

from tinyattn.course.checks.judging import attempt


class HomeworkChecker:
    """The checks of one homework, beside the student's functions."""

    def __init__(self, homework, student):
        self.homework, self.student = homework, student
        self.outcomes = {}  # task -> what came of its parts, the last time it was checked

    def check(self, task):
        """Check one task and print what is right and what is not. Never raises."""
        self.outcomes[task] = [attempt(part, self.student) for part in self.homework.of(task)]
        print(report(task, self.outcomes[task], self.homework.forbidden.get(task, ())))

    def table(self):
        """Print all tasks: what is done and what is left."""
        for task in self.homework.tasks:
            if task not in self.outcomes:
                self.outcomes[task] = [attempt(p, self.student) for p in self.homework.of(task)]
        print(table(self.outcomes))

    def require(self, task, title, *, hidden=False):
        """Raise AssertionError unless this part is right; nbgrader's test cells call it."""
        part = next(part for part in self.homework.of(task) if part.title == title)
        outcome = attempt(part, self.student, hidden=hidden)
        if not outcome.right:
            raise AssertionError(f"Task {task}, {title}: {outcome.text}")


def report(task, outcomes, forbidden=()):
    """One task as text; forbidden: full names of functions that grading does not let it call."""
    if all(outcome.right for outcome in outcomes):
        names = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in forbidden))
        rule = f" (It counts if your own code does it, without the library's {names}.)"
        return f"Task {task} is right." + (rule if names else "")
    if all(outcome.unfinished for outcome in outcomes):
        return f"Task {task} is not done: {outcomes[0].text.removeprefix(f'task {task}: ')}"
    lines = [f"Task {task}: {sum(o.right for o in outcomes)} of {len(outcomes)} parts are right."]
    for outcome in outcomes:
        text = f": {outcome.text}" if outcome.text else ""
        text = text.replace("\n", "\n     ")
        lines.append(f"  {'✓' if outcome.right else '✗'}  {outcome.title}{text}")
    return "\n".join(lines)


def table(outcomes):
    """All tasks as text: {task: its outcomes}."""
    lines = []
    for task, parts in outcomes.items():
        right = sum(part.right for part in parts)
        left = [part.title for part in parts if not part.right]
        state = "not done" if all(part.unfinished for part in parts) else "left: " + ", ".join(left)
        lines.append(f"  task {task}   {right} of {len(parts)}   {state if left else 'right'}")
    parts = [part for task in outcomes.values() for part in task]
    lines.append(f"  all      {sum(part.right for part in parts)} of {len(parts)}")
    return "\n".join(lines)
