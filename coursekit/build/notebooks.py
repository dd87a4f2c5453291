"""Turn the text of a lecture into its notebook: read, execute, clean, compare."""

import ast
import asyncio
import atexit
import base64
import io
import os
import re
import struct
from itertools import zip_longest
from threading import Thread

import numpy as np

from coursekit.build.experiment import canonical, stamp
from coursekit.build.text import (
    need,
    notes_of,
    read_notebook,
    read_source,
    slide_heading,
    slides,
    tags_of,
)
from coursekit.build.views import fold, from_text, to_read
from tinyattn.course.changes import BUILDING
from tinyattn.course.claims import full
from tinyattn.course.drawings import drawing, where
from tinyattn.course.project import SHIPPED, CourseError, write_text
from tinyattn.kernels.machine import first_use

CELL_TIMEOUT = 600  # seconds; in a quick run, a cell takes only a few
# Pixels per inch of a figure in the file, enough for a projector, and as shown in the notebook.
DPI, SHOWN_DPI = 160, 100


def unexecuted(document):
    """Return the notebook of the text: a lecture without outputs, or homework with its stubs."""
    notebook = read_source(document)
    if document.is_homework:
        from coursekit.build.homework import student_version

        return student_version(notebook, document)
    return notebook


def build_notebook(document, *, texts_only=False, on_slide=None):
    """Make the notebook of a lecture or homework, and write it. Only lectures are executed.

    With `texts_only`, the outputs of the existing notebook are kept, so its statements must agree
    with those of the text. The working folder of the run is the notebook's own, as in JupyterLab.
    `on_slide(slide)` is called at the beginning of each slide. Raises CourseError with slide and
    cell if a cell fails.
    """
    notebook = unexecuted(document)
    if texts_only and not document.is_homework:
        keep_outputs(notebook, document)
    elif not document.is_homework:
        execute_notebook(notebook, document, on_slide=on_slide)
        if full():
            stamp(document.root, notebook.cells)
    write_text(document.notebook, to_read(to_json(notebook)))
    return notebook


def keep_outputs(notebook, document):
    """Copy the outputs of the existing notebook to the code cells, and draw all drawings again.

    Comments and docstrings may differ. Raises CourseError if the statements of a cell do, because
    its output is then unknown.
    """
    from_dict = need("nbformat").from_dict
    there = [cell for cell in read_notebook(document) if cell["cell_type"] == "code"]
    cells = [cell for cell in notebook.cells if cell["cell_type"] == "code"]
    for cell, old in zip_longest(cells, there):
        if cell is None or old is None or not _same_statements(cell["source"], old["source"]):
            first = (cell or old)["source"].strip().partition("\n")[0]
            raise CourseError(
                f"{document.relative(document.source)}: the code differs from the notebook, first "
                f"in the cell that begins with '{first}'.\nCreate the outputs again with: tinyattn "
                f"build {document.number}"
            )
        cell["outputs"] = [from_dict(output) for output in old["outputs"]]
        cell["execution_count"] = old["execution_count"]
        if svg := _drawing_of(cell, document.root):
            for data in _drawn(cell["outputs"]):
                data["image/svg+xml"] = svg
    fold(notebook.cells)


def _same_statements(source, old):
    """Return whether two cells differ in comments, docstrings and layout only."""
    if source == old:
        return True
    try:
        return canonical(ast.parse(source).body) == canonical(ast.parse(old).body)
    except SyntaxError:  # a cell with a magic command
        return False


def _drawing_of(cell, root):
    """Return the SVG of the drawing or map that a cell shows at its end, or None."""
    if not re.search(r"^course\.(drawing|where)\(", cell["source"], re.M):
        return None
    call = getattr(ast.parse(cell["source"]).body[-1], "value", None)
    called = ast.unparse(call.func) if isinstance(call, ast.Call) else None
    show = {"course.drawing": drawing, "course.where": where}.get(called)
    if show is None:
        return None
    options = {option.arg: ast.literal_eval(option.value) for option in call.keywords}
    return show(*map(ast.literal_eval, call.args), **options, root=root).svg


def _drawn(outputs):
    """Return the data of all outputs that are drawings."""
    return [o["data"] for o in outputs if "image/svg+xml" in o.get("data", {})]


def execute_notebook(notebook, document, *, on_slide=None):
    """Run every cell in a fresh kernel, and keep the parts of outputs that every run repeats."""
    nbclient = need("nbclient", "class")
    document.folder.mkdir(parents=True, exist_ok=True)
    begins = {slide.cells[0]["id"]: slide for slide in slides(notebook.cells)}
    here = None

    def on_cell_start(cell, cell_index):
        nonlocal here
        if cell["id"] in begins:
            here = begins[cell["id"]]
            if on_slide is not None:
                on_slide(here)

    client = nbclient.NotebookClient(
        notebook,
        timeout=None if full() else CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(document.folder)}},
        record_timing=False,
        coalesce_streams=True,
        skip_cells_with_tag="none" if full() else "slow",
        extra_arguments=[
            f"--InlineBackend.print_figure_kwargs={{'bbox_inches': 'tight', 'dpi': {DPI}}}",
            "--log-level=ERROR",
        ],
        on_cell_start=on_cell_start,
    )
    try:
        # With one BLAS thread, the figures are the same on every machine, and no idle threads keep
        # the processor busy between the small products of a lecture.
        own = {"PYTHONHASHSEED": "0", first_use.SETTING: "now", BUILDING: "1"}
        environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, **own}
        _stoppable(client, environment)
    except nbclient.exceptions.CellExecutionError as error:
        where = f"slide '{here.title}'" if here else "before the first slide"
        raise CourseError(
            f"{document.relative(document.source)}, {where}: a cell failed\n"
            + plain_text(str(error)).strip()
        ) from None
    clean(notebook)


def executed(document):
    """Return the cells of a lecture with their outputs.

    In a checkout, they are in its notebook. An installed course has notebooks without outputs, so
    the lecture is run the first time, and the result is kept in the student's folder.
    """
    cells = read_notebook(document)
    if document.root != SHIPPED:
        return cells
    path = document.home / "build" / "notebooks" / document.notebook.name
    if path.is_file():
        kept = read_notebook(document, path)
        if list(map(_content, kept)) == list(map(_content, cells)):
            return kept
    print(
        f"running {document.number} once, for its pictures; this takes a minute or two", flush=True
    )
    notebook = need("nbformat", "class").read(document.notebook, as_version=4)
    execute_notebook(notebook, document)
    write_text(path, to_json(notebook))
    return read_notebook(document, path)


def _stoppable(client, environment):
    """Execute in a second thread, so that Ctrl-C ends the main thread.

    In the main thread, nbclient would only end the kernel and raise an error about it.
    """
    running, failures = [], []

    async def execute():
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        await client.async_execute(env=environment)

    def run():
        try:
            # ZeroMQ needs this event loop, which is not the default on Windows
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(execute())
        except BaseException as error:  # the waiting thread raises the exception
            failures.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        client.shutdown_kernel = "immediate"  # the kernel may be busy, and does not have to finish
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
        atexit.unregister(client._cleanup_kernel)  # there is no kernel left to clean up
        raise
    if failures:
        raise failures[0]


def clean(notebook):
    """Remove from an executed notebook everything that differs between two runs of a text."""
    from coursekit.build.text import METADATA

    notebook.metadata.clear()
    notebook.metadata.update(METADATA)
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in ("tags", "notes") if key in cell.metadata}
        cell.metadata.clear()
        cell.metadata.update(kept)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _is_announcement(output)]
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                figure = base64.b64decode(output.data["image/png"])
                output.data["image/png"] = base64.b64encode(fewer_bytes(figure)).decode()
            if "metadata" in output:
                output.metadata.clear()
                output.metadata.update(_figure_size(output.get("data", {})))
    fold(notebook.cells)


def _is_announcement(output):
    """Return whether an output only announces that a kernel is compiled, once on each machine."""
    words = output.get("text", "")
    return output.get("name") == "stderr" and words.startswith("tinyattn: compiling the kernel")


def fewer_bytes(png):
    """Return the same figure with a palette of 256 colours and a third of the bytes, if it looks
    equal.

    A plot has few colours, and many mixtures of them along its edges. The palette is used if the
    mean error is below 0.2 of 255 levels. The error of a photograph is far above this limit, so a
    photograph loses only its unused transparency.
    """
    image = need("PIL.Image").open(io.BytesIO(png))
    if image.mode == "RGBA" and image.getextrema()[3] == (255, 255):
        image = image.convert("RGB")
    if image.mode != "RGB":
        return png
    palette = image.quantize(256, method=0, dither=0)  # median cut
    error = np.abs(np.asarray(palette.convert("RGB"), np.int16) - np.asarray(image)).mean()
    smaller = io.BytesIO()
    (palette if error < 0.2 else image).save(smaller, "png", optimize=True)
    return min(png, smaller.getvalue(), key=len)


def _figure_size(data):
    """Return the size at which a notebook shows a figure, as the metadata of its output."""
    if "image/png" not in data:
        return {}
    header = base64.b64decode(data["image/png"][:64])
    width, height = struct.unpack(">II", header[16:24])
    return {
        "image/png": {
            "width": round(width * SHOWN_DPI / DPI),
            "height": round(height * SHOWN_DPI / DPI),
        }
    }


def to_json(notebook):
    """Return the file of a notebook, which is the same for the same content."""
    nbformat = need("nbformat", "class")
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=4) + "\n"


def differences(document):
    """Return the changes that a rebuild would make to the notebook, one line for each difference.

    Sources, types, tags, speaker notes and names of the cells are compared. Of the outputs, only
    the drawings are compared, because every other output would have to be computed.
    """
    name = document.relative(document.notebook)
    try:
        there = read_notebook(document)
    except CourseError as error:
        return [str(error)]
    wanted = unexecuted(document).cells
    changed, title = [], "(before the first slide)"
    for i in range(max(len(wanted), len(there))):
        new = wanted[i] if i < len(wanted) else None
        old = there[i] if i < len(there) else None
        heading = slide_heading(new or old)
        title = heading[1] if heading else title
        if new is None or old is None or _content(new) != _content(old):
            what = "is missing" if old is None else "is left over" if new is None else "differs"
            changed.append(
                f"{name}: slide '{title}', cell {i + 1} {what}; "
                f"run: tinyattn build {document.number}"
            )
            if new is None or old is None or new["cell_type"] != old["cell_type"]:
                break  # all later cells are shifted
        elif new["cell_type"] == "code" and (svg := _drawing_of(new, document.root)):
            if any("".join(data["image/svg+xml"]) != svg for data in _drawn(old["outputs"])):
                changed.append(
                    f"{name}: slide '{title}', cell {i + 1} shows a drawing that has changed; "
                    f"run: tinyattn build --texts {document.number}"
                )
    file = document.notebook.read_text(encoding="utf-8")
    if to_read(from_text(file)) != file:
        changed.append(
            f"{name}: the cell that installs tinyattn, or the first line of a folded answer, is "
            f"missing; run: tinyattn build --texts {document.number}"
        )
    return changed


def _content(cell):
    return cell["cell_type"], cell["source"], tags_of(cell), notes_of(cell), cell.get("id")


def plain_text(text):
    """Return text without the colour codes of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
