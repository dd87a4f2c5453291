"""Build the data of the page from a tape and the recorded names, lines and layers."""

import linecache

import numpy as np

from tinyattn import functional
from tinyattn.trace import names
from tinyattn.trace.forward import Measured, function_of
from tinyattn.trace.jacobian_rows import TooManyEntries, rows_of
from tinyattn.trace.patterns import packed
from tinyattn.trace.record import Closed
from tinyattn.trace.source import described, short
from tinyattn.trace.terms import summands

MOST_STEPS, MOST_ENTRIES, MOST_CELLS = 400, 15_000_000, 1_000_000
STORED = 3_000  # a step with at most this many slopes keeps each measured slope in the file


def built(tape, recorder, model=None, title="trace"):
    """Return the data of the page in dictionaries and lists, and {id of an array: its node}.

    Args:
        tape       the `Tape` with all steps
        recorder   the `Recorder` with names, lines and layers
        model      module whose parameters are named. If None, only recorded modules name theirs
        title      title of the page

    Raises:
        ValueError: the computation is too large to be viewed number by number
    """
    _small_enough(tape)
    roots = ([model] if model is not None else []) + [r for r in recorder.roots if r is not model]
    builder = Builder(tape, recorder, roots)
    return builder.data() | {"title": title}, builder.number


def _small_enough(tape):
    cells = max([s.y.size for s in tape.steps], default=0)
    if len(tape.steps) > MOST_STEPS or cells > MOST_CELLS:
        raise ValueError(
            f"trace: expected at most {MOST_STEPS:,} steps and arrays of at most {MOST_CELLS:,} "
            f"elements, got {len(tape.steps):,} {'step' if len(tape.steps) == 1 else 'steps'} and "
            f"up to {cells:,} {'element' if cells == 1 else 'elements'}. Trace a shorter sequence, "
            "fewer layers or a smaller batch"
        )


class Builder:
    """A builder of the page's nodes, one for each given array and each result, oldest first.

    Args:
        tape       the `Tape` with all steps
        recorder   the `Recorder` with names, lines and layers
        roots      modules whose parameters and layers are named
    """

    def __init__(self, tape, recorder, roots):
        self.tape, self.recorder, self.roots = tape, recorder, roots
        self.parameters = names.of_parameters(recorder, roots)
        self.modules = names.of_modules(roots)
        self.nodes, self.number, self.operations, self.entries = [], {}, {}, 0
        self.by_node = {}  # names of results that expressions may contain

    def data(self):
        """Return the nodes, operations and groups in dictionaries and lists."""
        for step in self.tape.steps:
            for x, value in zip(step.inputs, step.values, strict=True):
                self._leaf(x, value)
            self._result(step)
        self._names_before_reshapes()
        root = self.nodes[self.number[id(self.tape.root)]]
        root["name"] = root["name"] if root["rank"] < 2 else "L"
        groups = self._groups()
        shown = [n for n in self.nodes if not n.get("through")]  # a reshape keeps its plain name
        for node, label in zip(shown, names.numbered([n["name"] for n in shown]), strict=True):
            node["name"] = label
        for node in self.nodes:  # remove the parts that the page does not need
            node.pop("rank", None), node.pop("time", None)
        return {
            "nodes": self.nodes,
            "loss": self.number[id(self.tape.root)],
            "operations": self.operations,
            "groups": groups,
        }

    def _names_before_reshapes(self):
        """Skip reshapes. A user's name for the reshaped result becomes the name of its source."""
        for node in reversed(self.nodes):
            if node.get("through") and node["rank"] == 0:
                (source,) = [self.nodes[i["node"]] for i in node["inputs"] if i.get("rows")]
                if source["kind"] == "result" and source["rank"] == 2:
                    source["name"], source["rank"] = node["name"], 0

    # ---- arrays that were given

    def _leaf(self, x, value):
        """Add a node for an array that no step computed: a parameter, an input, a constant."""
        key = id(x) if x is not None else id(value)
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
        if key in self.number or not is_array:
            return
        name = self.parameters.get(key) or self._variable(x, value)
        kind = "given" if name else "constant"
        if x is not None and x.requires_grad and not any(x is t for t in self.recorder.given):
            kind = "parameter"
        self._add(key, value, x, name=name or _plain_name(value), kind=kind)

    def _variable(self, x, value):
        """Return the user's name of a Tensor, or of the plain array that it holds."""
        original = [k for k, (_, copy) in self.tape._copies.items() if copy is value]
        for key in ([id(x)] if x is not None else []) + original:
            if key in self.recorder.names:
                return self.recorder.names[key].text
        return None

    def _add(self, key, value, x, **facts):
        g = None if x is None else self.tape.gradients.get(x)
        self.number[key] = len(self.nodes)
        self.nodes.append(
            {
                "shape": list(value.shape),
                "data": _flat_float32(value),
                "grad": None if g is None else _flat_float32(np.asarray(g)),
                **facts,
            }
        )

    # ---- results

    def _result(self, step):
        function = function_of(step.operation, self.recorder.functions)
        try:
            rows = rows_of(step, function, MOST_ENTRIES - self.entries)
            self.entries += sum(len(r.columns) for r in rows if r is not None)
        except TooManyEntries:
            self.entries = MOST_ENTRIES + 1
        if self.entries > MOST_ENTRIES:
            raise ValueError(
                f"trace: the page has room for {MOST_ENTRIES:,} derivatives of one element with "
                f"respect to another, but the first {len(self.nodes) + 1} arrays have more. Trace "
                "a shorter sequence, fewer layers or a smaller batch"
            )
        forms = packed(step, rows)
        inputs = [self._input(step, k, form) for k, form in enumerate(forms)]
        through = _moves_only(step, rows, forms)
        operands = [self._operand(i, step.operation.name) for i in inputs if i is not None]
        name, is_name = names.base_name(step, self.recorder, operands)
        # the name is a variable, or an expression of variables
        known = is_name or name != step.operation.name
        moved = next((o for o in operands if o is not None), None) if through else None
        if moved is not None and step.operation.name in ("transpose", "swapaxes"):
            moved = f"({moved})ᵀ" if " " in moved else f"{moved}ᵀ"
        self.by_node[len(self.nodes)] = name if known else moved
        self._add(
            id(step.tensor),
            step.y,
            step.tensor,
            kind="result",
            name=name,
            rank=self._rank(step.tensor),
            operation=self._operation(step.operation, function),
            inputs=[i for i in inputs if i is not None],
            terms=summands(step, rows, forms),
            measured=_measured(step, function, rows, forms),
            through=through,
            time=step.tensor._created,
            line=_line(self.recorder.lines, step.tensor._created),
            inner=_line(self.recorder.inner, step.tensor._created),
        )

    def _rank(self, tensor):
        """Return 0 for a user's name, 1 for a name from the library, and 2 without a name."""
        found = self.recorder.names.get(id(tensor))
        return 2 if found is None or found.text in names.DULL else found.rank

    def _input(self, step, k, form):
        """Return the entry of operand k on the page: its node, number or text, or None."""
        x, value = step.inputs[k], step.values[k]
        key = id(x) if x is not None else id(value)
        if key in self.number:
            return {"k": k, "node": self.number[key], "rows": form}
        if isinstance(value, int | float | np.number) and not isinstance(value, bool) and form:
            return {"k": k, "number": float(value), "rows": form}
        if value is None or value is False:
            return None
        taken = step.operation.parameters or ()
        what = taken[k].name if k < len(taken) else "input"
        return {"k": k, "text": names.brief(value), "what": what}

    def _operand(self, entry, operation):
        """Return the name of an operand in an expression, or None if it has no name."""
        if "number" in entry:
            return f"{entry['number']:.3g}"
        if "text" in entry:
            return entry["text"] if operation == "power" else None
        node = self.nodes[entry["node"]]
        if node["kind"] == "result":
            return self.by_node[entry["node"]]
        return node["name"] if node["kind"] != "constant" else None

    def _operation(self, operation, function):
        """Return the index of an operation among those that the page describes."""
        key = f"{operation.name} {id(operation)}"
        if key in self.operations:
            return self.operations[key]["number"]
        number = len(self.operations)
        self.operations[key] = described(operation, function) | {
            "number": number,
            "name": operation.name,
        }
        return number

    def _groups(self):
        """Return the layers and functions that computed results, outer ones first, as frames."""
        groups, seen = [], set()
        results = [(i, n["time"]) for i, n in enumerate(self.nodes) if n["kind"] == "result"]
        for call in self.recorder.calls:
            inside = tuple(i for i, time in results if call.begin < time <= call.end)
            if len(inside) < 2 or len(inside) == len(results) or inside in seen:
                continue
            seen.add(inside)
            is_module = not isinstance(call.what, str)
            label = self.modules.get(id(call.what), type(call.what).__name__)
            group = {
                "label": label if is_module else f"{call.what}()",
                "nodes": list(inside),
                "module": is_module,
            }
            if isinstance(call.what, Closed):
                formula = (getattr(functional, call.what).__doc__ or "").partition("\n")[0]
                group |= {"closed": True, "formula": formula.removeprefix("Return ")}
            groups.append(group)
        return groups


def _plain_name(value):
    return "mask" if value.dtype.kind == "b" else "number" if value.ndim == 0 else "constant"


def _flat_float32(a):
    return np.asarray(a, np.float32).reshape(-1)


def _moves_only(step, rows, forms):
    """Return whether the result has the same numbers as its single input, at other positions."""
    tensors = [k for k, r in enumerate(rows) if r is not None]
    if len(tensors) != 1:
        return False
    k = tensors[0]
    same = forms[k].get("n") == 1 and forms[k].get("slope") == 1.0
    if not same or np.size(step.values[k]) != step.y.size:
        return False
    moved = np.asarray(step.values[k]).reshape(-1)[rows[k].columns]
    return len(set(rows[k].columns.tolist())) == step.y.size and np.array_equal(
        moved, step.y.reshape(-1), equal_nan=True
    )


def _line(lines, time):
    """Return (file, number, text) of the last line that began before a time, or None."""
    before = [line for line in lines if line.time <= time]
    if not before:
        return None
    last = before[-1]
    text = linecache.getline(last.file, last.number).strip()
    file = "" if "ipykernel" in last.file or last.file.startswith("<") else short(last.file)
    return [file or "cell", last.number, text]


def _measured(step, function, rows, forms):
    """Measure the slopes of a step, and add the comparison with the rules to `forms`.

    measured   for a small step, the slopes by differences in the order of the rule's slopes
    wrong      [element of y, column, rule's slope, measured slope] where the two differ

    The result is {"compared", "wrong", "largest"}: the number of compared slopes, the number of
    those that differ, and the largest difference of the others. It is None if the function is
    unknown, or for a compiled kernel, some of whose inputs were computed from others.
    """
    if function is None or "residuals" in step.options:
        return None
    compared, wrong, largest = 0, 0, 0.0
    for k, (r, form) in enumerate(zip(rows, forms, strict=True)):
        if r is None or not isinstance(step.values[k], np.ndarray):
            continue
        try:
            m = Measured(function, step, k)
        except Exception:
            continue
        slopes = _columns_of(step, r, k, m.columns)
        bad = m.wrong(slopes)
        compared, wrong = compared + bad.size, wrong + int(bad.sum())
        with np.errstate(all="ignore"):
            difference = np.abs(slopes - m.slopes)[~bad]
        largest = max(largest, difference[np.isfinite(difference)].max(initial=0))
        if len(r.columns) <= STORED and len(m.columns) == np.size(step.values[k]):
            form["measured"] = m.slopes[r.owners(), r.columns].astype(np.float32)
        if bad.any():
            form["wrong"] = [
                [int(i), int(m.columns[c]), float(slopes[i, c]), float(m.slopes[i, c])]
                for i, c in np.argwhere(bad)[:STORED]
            ]
    return {"compared": compared, "wrong": wrong, "largest": float(largest)}


def _columns_of(step, r, k, columns):
    """Return the rule's slopes [elements of y, columns] for the elements `columns` of input k."""
    place = np.full(np.size(step.values[k]), -1)
    place[columns] = np.arange(len(columns))
    out = np.zeros((step.y.size, len(columns)))
    at = place[r.columns]
    out[r.owners()[at >= 0], at[at >= 0]] = r.slopes[at >= 0]
    return out
