"""Mark one submission: every task by itself, with visible and hidden inputs."""

from dataclasses import asdict, dataclass, field

from coursekit.grade import forbidden
from coursekit.grade.handed_in import take
from coursekit.grade.remote import RemoteStudent
from tinyattn.course.checks.judging import Outcome, attempt

NOT_DONE, UNREADABLE = "not done", "a notebook that cannot be read"


@dataclass
class Mark:
    """What one student gets: the outcomes of all parts, the answers to open questions, notes."""

    student: str
    outcomes: list
    answers: dict = field(default_factory=dict)  # cell id -> text
    notes: list = field(default_factory=list)
    graded: bool = True  # False: the grader or the machine failed, and it is to be tried again

    @property
    def points(self):
        return sum(outcome.right for outcome in self.outcomes)

    @property
    def of(self):
        return len(self.outcomes)

    def of_task(self, task):
        return [outcome for outcome in self.outcomes if outcome.task == task]

    def as_data(self):
        return asdict(self)

    @staticmethod
    def from_data(data):
        outcomes = [Outcome(**outcome) for outcome in data["outcomes"]]
        return Mark(data["student"], outcomes, data["answers"], data["notes"])


def mark(submission, plan, sandbox):
    """Mark one submission in processes of this sandbox."""
    homework = plan.homework
    if submission.trouble:
        parts = [_nothing(part, submission.trouble, UNREADABLE) for part in homework.parts]
        return Mark(submission.student, parts, notes=[submission.trouble])
    found = take(submission, plan)
    notes, first = list(found.notes), {}
    open_tasks = []
    for task in homework.tasks:
        reason = refused(task, plan, found.sources)
        if reason:
            first[task] = [_nothing(part, reason, reason) for part in homework.of(task)]
        else:
            open_tasks.append(task)
        notes += _look(task, plan, found.sources)
    apart = [task for task in open_tasks if task in homework.alone]
    for tasks in ([task for task in open_tasks if task not in apart], apart):
        first |= _together(tasks, plan, found.sources, sandbox)
    for task in open_tasks:
        if not all(outcome.right for outcome in first[task]):
            first[task] = _best(first[task], _alone(task, plan, found.sources, sandbox))
    outcomes = [outcome for task in homework.tasks for outcome in first[task]]
    answers = {cell.id: _answer(found.sources.get(cell.id), cell) for cell in plan.open_questions}
    return Mark(submission.student, outcomes, answers, list(dict.fromkeys(notes)))


def refused(task, plan, sources):
    """Why a task is not even run: it is untouched, or calls what it may not."""
    if plan.untouched(task, sources):
        return NOT_DONE
    given = "\n".join(cell.source for cell in plan.cells if not cell.wanted and cell.kind == "code")
    for cell in plan.of_task(task):
        names = plan.homework.forbidden.get(task, ())
        if found := forbidden.calls(sources.get(cell.id) or "", names, _imports_only(given)):
            return f"you call {', '.join(found)}, which this task asks you to write yourself"
    return None


def _imports_only(source):
    return "\n".join(line for line in source.split("\n") if line.startswith(("import ", "from ")))


def _look(task, plan, sources):
    """Notes for the lecturer about unusual names."""
    found = [
        name
        for cell in plan.of_task(task)
        for name in forbidden.suspicious(sources.get(cell.id), cell.source)
    ]
    return [f"task {task}: look at its use of {', '.join(found)}"] if found else []


def _nothing(part, text, mistake):
    return Outcome(part.task, part.title, False, text, mistake, mistake == NOT_DONE)


def _attempt(homework, task, student):
    return [attempt(part, student, hidden=True) for part in homework.of(task)]


def _together(tasks, plan, sources, sandbox):
    """{task: outcomes} of several tasks in one process, with all that they forbid taken away."""
    if not tasks:
        return {}
    names = {name for task in tasks for name in plan.homework.forbidden.get(task, ())}
    with RemoteStudent(sandbox, plan.program(sources), names) as student:
        return {task: _attempt(plan.homework, task, student) for task in tasks}


def _alone(task, plan, sources, sandbox):
    """The task again in a process of its own, with the sample solutions of the tasks before it."""
    program = plan.program(plan.with_solutions(task, sources), until=task)
    with RemoteStudent(sandbox, program, plan.homework.forbidden.get(task, ())) as student:
        return _attempt(plan.homework, task, student)


def _best(one, other):
    """Part by part the better outcome; the words are those of the second."""
    return [a if a.right else b for a, b in zip(one, other, strict=True)]


def _answer(source, cell):
    """The text of an open question, without the line that asked for it."""
    text = (source or "").strip()
    asked = cell.source.strip()
    return text[len(asked) :].strip() if text.startswith(asked) else text
