"""Mark one submission: every task separately, with visible and hidden inputs."""

import ast
import contextlib
from dataclasses import asdict, dataclass, field

from coursekit.grade.handed_in import take
from coursekit.grade.program import Program
from coursekit.grade.remote import RemoteStudent, Worker
from tinyattn.course.checks import listed
from tinyattn.course.checks.code import names_asked
from tinyattn.course.checks.judging import Outcome, attempt

NOT_DONE, UNREADABLE = "not done", "a notebook that cannot be read"
SUSPICIOUS = {"ctypes", "gc", "importlib", "inspect", "linecache", "os", "pickle", "runner"}
SUSPICIOUS |= {"server", "socket", "subprocess", "sys", "tracemalloc", "urllib"}


@dataclass
class Mark:
    """The result of one student: outcomes of all parts, answers to open questions, and notes."""

    student: str
    outcomes: list
    answers: dict = field(default_factory=dict)  # cell id -> text
    notes: list = field(default_factory=list)  # for the lecturer
    remarks: list = field(default_factory=list)  # for the student as well
    graded: bool = True  # False: the grader or the machine failed, so grading must be repeated
    late_days: int | None = None  # None: not known
    final: float | None = None  # the points that remain after late days, or None for all

    @property
    def points(self):
        return sum(outcome.right for outcome in self.outcomes)

    @property
    def counted(self):
        """Return the points that count after the deduction for late days."""
        return self.points if self.final is None else self.final

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
        return Mark(**(data | {"outcomes": outcomes}))


def mark(submission, plan, sandbox, secret=0, *, hidden=True):
    """Mark one submission in processes of this sandbox, with the hidden inputs too if `hidden`.

    The hidden inputs depend on `secret`.
    """
    homework = plan.homework
    if submission.trouble:
        parts = [_nothing(part, submission.trouble, UNREADABLE) for part in homework.parts]
        notes = [submission.trouble, *submission.notes]
        return Mark(submission.student, parts, notes=notes)
    found = take(submission, plan)
    outcomes, remarks, notes = [], [], [*submission.notes, *found.notes]
    with contextlib.ExitStack() as stack:
        workers = {}
        for task in homework.tasks:
            reason = refused(task, plan, found)
            notes += _look(task, plan, found)
            if reason:
                outcomes += [_nothing(part, reason, reason) for part in homework.of(task)]
                continue
            remarks += _missing(task, plan, found)
            # Removing the engine affects every task of a process, so tasks by hand get another one.
            kind = bool(homework.by_hand.get(task))
            if kind not in workers:
                workers[kind] = stack.enter_context(Worker(sandbox))
            outcomes += _of_task(task, plan, found, workers[kind], hidden, secret)
    notes = list(dict.fromkeys(remarks + notes))
    return Mark(submission.student, outcomes, found.answers, notes, list(dict.fromkeys(remarks)))


def _of_task(task, plan, found, worker, hidden, secret):
    """Return the outcomes of a task.

    Parts that are wrong are tested again with the sample solutions of the earlier tasks.
    """
    parts = plan.homework.of(task)
    broken = [
        {"error": "SyntaxError", "message": e, "line": ""} for e in _broken(task, plan, found)
    ]

    def tried(samples):
        student = RemoteStudent(worker, Program(task, plan, found.code, samples), broken)
        return [attempt(part, student, hidden=hidden, secret=secret) for part in parts]

    first = tried(())
    samples = plan.samples(task) if plan.has_solutions else _as_they_are(task, plan, found)
    if all(outcome.right for outcome in first) or not samples:
        return first
    second = tried(samples)
    return [a if a.right else b for a, b in zip(first, second, strict=True)]


def _as_they_are(task, plan, found):
    """Return the student's own solutions of earlier tasks, if there are no sample solutions."""
    earlier = set(plan.homework.earlier.get(task, ()))
    needed, _ = found.code.needed(earlier) if earlier else ([], None)
    return [ast.unparse(statement.node) for statement in needed]


def refused(task, plan, found):
    """Return why a task is not run (it is untouched, or uses a forbidden name), or None."""
    if untouched(task, plan, found):
        return NOT_DONE
    # the names that these functions use count only for the task that asks for them
    earlier = plan.homework.earlier.get(task, ())
    needed, _ = found.code.needed(plan.asked(task), earlier)
    trees = [ast.Module([s.node], []) for s in needed]
    imports = [ast.parse(source) for source in plan.given(task)]
    own = [s.node for s in found.code.statements]
    aliases = listed.imports(imports) | listed.imports(own)
    return listed.why_not(trees, plan.homework, task, aliases)


def untouched(task, plan, found):
    """Return whether the student wrote nothing for the task."""
    written = found.code.bound(plan.asked(task), but=plan.stubs)
    return not written and not _broken(task, plan, found)


def needed_by(task, plan, code):
    """Return the statements of the notebook that answer a task: those that define its names."""
    return code.needed(plan.asked(task))[0]


def _broken(task, plan, found):
    """Return the syntax errors of all cells if no cell defines the names of the task, else []."""
    return [] if found.code.bound(plan.asked(task), but=plan.stubs) else found.code.broken.values()


def _missing(task, plan, found):
    """Return a remark about names that the task's code uses and that no cell defines."""
    there = set().union(set(), *(names_asked(source) for source in plan.given(task)))
    names = found.missing(plan.asked(task), there)
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are"
    return [f"task {task}: {', '.join(names)} {verb} not defined in any cell of the notebook"]


def _look(task, plan, found):
    """Return notes for the lecturer about unusual names."""
    handed_out = set()
    for cell in plan.of_task(task):
        handed_out |= {n.arg for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.arg)}
    used = set()
    for statement in needed_by(task, plan, found.code):
        for node in ast.walk(statement.node):
            for name in ("id", "attr", "module", "name"):
                value = getattr(node, name, None)
                used.add(value.split(".")[0] if isinstance(value, str) else "")
    names = sorted((used & SUSPICIOUS) - handed_out)
    return [f"task {task}: look at its use of {', '.join(names)}"] if names else []


def _nothing(part, text, mistake):
    return Outcome(part.task, part.title, False, text, mistake, mistake == NOT_DONE)
