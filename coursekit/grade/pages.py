"""Write pages in HTML: one for each student, one for the class, one with the open questions."""

import hashlib
import re
from collections import Counter
from html import escape

from coursekit.deck.render import formulas
from coursekit.grade.marking import NOT_DONE, UNREADABLE
from tinyattn.course.project import write_text

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7a3b; --bad: #b3261e; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top }
td.mark { width: 1rem }
td.student { width: 14rem }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.right { color: var(--good) } .wrong { color: var(--bad) } .quiet { opacity: .65 }
.text, blockquote { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 }
.bar { background: var(--soft); height: .7rem; border-radius: .35rem; min-width: 8rem }
.bar div { background: var(--good); height: 100%; border-radius: .35rem }
.question { background: var(--soft); padding: .8rem 1rem; border-radius: .4rem }
code { background: var(--soft); border-radius: .2rem; padding: 0 .2em; font-size: .9em }
.sample { border-left: 4px solid var(--good); padding-left: .8rem; margin: .8rem 0 }
"""

SET = """
addEventListener("DOMContentLoaded", () => {
  const delimiters = [["$$", true], ["$", false]].map(
    ([mark, display]) => ({ left: mark, right: mark, display }));
  for (const text of document.querySelectorAll(".formulas"))
    renderMathInElement(text, { throwOnError: false, errorColor: "inherit", delimiters });
});
"""


def write(folder, plan, marks):
    """Write all pages into the folder and return the page of the class."""
    css, js = formulas()
    write_text(folder / "formulas.css", css)
    write_text(folder / "formulas.js", js + SET)
    for result in marks:
        path = folder / "students" / f"{file_name(result.student)}.html"
        write_text(path, page(result.student, student_page(plan, result), up="../"))
    if plan.open_questions:
        write_text(folder / "questions.html", page("Open questions", questions(plan, marks)))
    index = folder / "index.html"
    write_text(index, page(f"{plan.document.number}: the class", class_page(plan, marks)))
    return index


def file_name(student):
    """Return a file name for a student's name. Different names give different file names."""
    plain = re.sub(r"[^\w-]+", "_", student)[:60]
    if plain == student:
        return plain
    return f"{plain}-{hashlib.sha256(student.encode('utf-8', 'replace')).hexdigest()[:8]}"


def page(title, body, up=""):
    """Return a whole page. Text from students in `body` must already be escaped.

    `up` leads to the folder of formulas.js, which typesets the formulas of the elements .formulas.
    """
    setting = (
        f'<link rel="stylesheet" href="{up}formulas.css"><script src="{up}formulas.js"></script>'
        if 'formulas">' in body and "$" in body
        else ""
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>{setting}<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def student_page(plan, result):
    """Return a student's page, which lists the parts that are right, and explains the others."""
    lines = [
        f"<h1>{escape(result.student)}</h1>",
        f"<p>{_title(plan)}: <strong>{_sum(result)}</strong></p>",
    ]
    lines += [f"<p>Note: {escape(remark)}.</p>" for remark in result.remarks]
    for task in plan.homework.tasks:
        parts = result.of_task(task)
        right = sum(part.right for part in parts)
        lines += [f"<h2>Task {task}: {right} of {len(parts)}</h2>", "<table>"]
        lines += [_part(part) for part in parts] + ["</table>"]
    written = [cell for cell in plan.open_questions if result.answers.get(cell.id)]
    if written:
        lines.append("<h2>Your answers to the open questions</h2>")
        lines.append("<p>They are read by your teacher, and no points are given here.</p>")
        for cell in written:
            answer = escape(result.answers[cell.id])
            lines.append(f"<h3>{question_name(cell)}</h3>")
            lines.append(f'<blockquote class="formulas">{answer}</blockquote>')
    return "\n".join(lines)


def _sum(result):
    if not result.graded:
        return "not graded yet"
    counted = f", {result.counted:g} of them count" if result.final is not None else ""
    return f"{result.points} of {result.of} points{counted}"


def _part(part):
    mark = '<td class="mark right">✓</td>' if part.right else '<td class="mark wrong">✗</td>'
    text = "" if part.right else f'<div class="text">{escape(part.text)}</div>'
    return f"<tr>{mark}<td>{escape(part.title)}{text}</td></tr>"


def class_page(plan, marks):
    """Return all points, the results of each task, and the most frequent mistakes."""
    marks, everybody = [result for result in marks if result.graded], marks
    lines = [
        f"<h1>{_title(plan)}: {len(everybody)} submissions</h1>",
        f"<p>{_average(plan, everybody)}"
        + ('<a href="questions.html">The open questions</a>' if plan.open_questions else "")
        + "</p>",
        *_tasks(plan, marks),
        *_mistakes(plan, marks),
        *_students(plan, everybody),
    ]
    return "\n".join(lines)


def _tasks(plan, marks):
    lines = [
        '<h2>Tasks</h2><table><tr><th>task</th><th>points given</th><th class="number">all right'
        '</th><th class="number">not done</th></tr>'
    ]
    for task in plan.homework.tasks:
        parts = [result.of_task(task) for result in marks]
        share = sum(p.right for of_one in parts for p in of_one) / max(sum(map(len, parts)), 1)
        whole = sum(all(p.right for p in of_one) for of_one in parts)
        none = sum(all(p.mistake == NOT_DONE for p in of_one) for of_one in parts)
        bar = f'<div class="bar"><div style="width:{100 * share:.0f}%"></div></div>'
        lines.append(
            f'<tr><td>{task}</td><td>{bar}{share:.0%}</td><td class="number">{whole}</td>'
            f'<td class="number">{none}</td></tr>'
        )
    return [*lines, "</table>"]


def _mistakes(plan, marks):
    counts = Counter()
    for result in marks:
        made = {(o.task, o.mistake) for o in result.outcomes if not o.right}
        counts.update(key for key in made if key[1] not in (NOT_DONE, UNREADABLE))
    rows = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    lines = ["<h2>What went wrong</h2><table>"]
    for (task, mistake), count in rows:
        lines.append(
            f'<tr><td class="number">{count} of {len(marks)}</td><td>task {task}</td>'
            f"<td>{escape(mistake)}</td></tr>"
        )
    return [*lines, "</table>"] if rows else ["<h2>What went wrong</h2><p>Nothing.</p>"]


def _students(plan, marks):
    tasks = plan.homework.tasks
    head = "".join(f'<th class="number">{task}</th>' for task in tasks)
    lines = [
        '<h2>Students</h2><table><tr><th>student</th><th class="number">points</th>'
        f"{head}<th>note</th></tr>"
    ]
    for result in sorted(marks, key=lambda m: m.student):
        link = f"students/{file_name(result.student)}.html"
        cells = "".join(_points(result.of_task(task)) for task in tasks)
        lines.append(
            f'<tr><td><a href="{escape(link)}">{escape(result.student)}</a></td>'
            f'<td class="number">{result.points if result.graded else "?"}</td>{cells}'
            f'<td class="quiet">{escape("; ".join(result.notes))}</td></tr>'
        )
    return [*lines, "</table>"]


def _points(parts):
    right = sum(part.right for part in parts)
    kind = "right" if right == len(parts) else "wrong" if right == 0 else ""
    return f'<td class="number {kind}">{right}</td>'


def _average(plan, marks):
    """Return the average number of points of all students that could be graded."""
    graded = [result.points for result in marks if result.graded]
    total = sum(graded) / max(len(graded), 1)
    missing = len(marks) - len(graded)
    rest = f" {missing} could not be graded and count nowhere here." if missing else ""
    return f"On average {total:.1f} of {len(plan.homework.parts)} points.{rest} "


def questions(plan, marks):
    """Return every open question with its sample answer next to all submitted answers."""
    lines = [f"<h1>{_title(plan)}: open questions</h1>"]
    for cell in plan.open_questions:
        lines.append(f"<h2>{question_name(cell)}</h2>")
        lines.append(f'<div class="question text formulas">{_markdown(cell.question)}</div>')
        if cell.solution:
            lines.append(f'<p class="sample text formulas">{_markdown(cell.solution)}</p>')
        lines.append("<table>")
        for result in marks:
            answer = result.answers.get(cell.id, "")
            shown = escape(answer) if answer else '<span class="quiet">nothing</span>'
            lines.append(
                f'<tr><td class="student">{escape(result.student)}</td>'
                f'<td class="text formulas">{shown}</td></tr>'
            )
        lines.append("</table>")
    return "\n".join(lines)


def question_name(cell):
    """Return the name of the question, such as 7b, from its distributed cell, or else its task."""
    found = re.search(r"answer to (\w+)", cell.source)
    return f"Question {escape(found[1])}" if found else f"Task {cell.task}"


def _markdown(text):
    """Return HTML of our text: headings, bold and italic words, code, and unchanged formulas."""
    pieces = re.split(r"(\$\$.+?\$\$|\$[^$\n]+\$|`[^`\n]+`)", escape(text.strip()), flags=re.S)
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = f"<code>{piece[1:-1]}</code>" if piece[0] == "`" else piece
            continue
        piece = re.sub(r"^#+ +(.+)$", r"<strong>\1</strong>", piece, flags=re.M)
        piece = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", piece)
        pieces[i] = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<em>\1</em>", piece)
    return "".join(pieces)


def _title(plan):
    return escape(f"{plan.document.number} {plan.document.slug.replace('_', ' ')}")
