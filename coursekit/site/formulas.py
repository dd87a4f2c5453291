"""Turn formulas of docstrings, such as `y_t = Σ_s a_ts v_s`, into LaTeX.

Only text that is certainly a formula is typeset. It consists of signs, single letters with their
indices, and the words in `WORDS`. Text with any other word stays text.
"""

import re
import unicodedata

GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "η": "eta",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "varphi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Φ": "Phi",
    "Ω": "Omega",
    "ξ": "xi",
    "κ": "kappa",
    "Θ": "Theta",
    "Λ": "Lambda",
}
SIGNS = {
    "·": r"\cdot",
    "×": r"\times",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "←": r"\leftarrow",
    "→": r"\to",
    "∈": r"\in",
    "∞": r"\infty",
    "∂": r"\partial",
    "∫": r"\int",
    "⊙": r"\odot",
    "□": r"\square",
    "⌊": r"\lfloor",
    "⌋": r"\rfloor",
    "‖": r"\lVert ",
    "…": r"\dots",
    "±": r"\pm",
    "Σ": r"\sum",
    "Π": r"\prod",
    "½": r"\tfrac12",
    "≈": r"\approx",
    "∝": r"\propto",
    "∪": r"\cup",
    "=": "=",
    "+": "+",
    "-": "-",
    "−": "-",
    "/": "/",
    "<": "<",
    ">": ">",
    "|": r"\vert",
    ",": ",",
    "(": "(",
    ")": ")",
    "[": "[",
    "]": "]",
    "{": r"\{",
    "}": r"\}",
    "'": "'",
    ":": ":",
    ";": ";",
}
UPPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁱⁿˣᵀᵗ", "0123456789-+inxTt", strict=True))
LOWER = dict(
    zip(
        "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₜₓₛₘₕ",
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", *"ijkntxsmh"],
        strict=True,
    )
)
BARS = {"\N{COMBINING MACRON}": "bar", "\N{COMBINING CIRCUMFLEX ACCENT}": "hat"}
# TeX has commands for these
ROMAN = ["exp", "ln", "log", "max", "min", "tanh", "cos", "sin", "tan"]
WORDS = {
    *ROMAN,
    "softmax",
    "softplus",
    "relu",
    "gelu",
    "silu",
    "elu",
    "erf",
    "norm",
    "mean",
    "var",
    "conv",
    "score",
    "weights",
    "weight",
    "bias",
    "scale",
    "momentum",
    "logits",
    "head",
    "memory",
    "encoder",
    "decoder",
    "places",
    "out",
    "Attention",
    "SelfAttention",
    "FeedForward",
    "SwiGLU",
    "MAB",
    "ISAB",
    "PMA",
    "SAB",
    "MLP",
    "LSTM",
    "GRU",
    "rFF",
    "FF",
    "Embed",
    "PairEmbed",
    "Block",
    "Adj",
    "dropout",
    "slope",
    "gain",
    "stride",
    "dilation",
    "padding",
    "ids",
    "target",
    "base",
    "kT",
    "token",
    "mask",
    "keys",
    "dampening",
    "negative_slope",
    "values",
    "index",
    "LeakyReLU",
    "nn",
    "size",
    "warmup",
    "positions",
    "threshold",
    "sum",
    "eps",
    "sigmoid",
    "attention",
    "types",
    "tgt",
    "src",
    "features",
    "warm",
    "query",
    "key",
    "value",
    "last",
    "pictures",
    "momenta",
    "lr",
    "std",
    "fan",
    "tq",
    "pos",
}
RELATIONS = re.compile(r"[=←≤≥<>≈∈]")
OPERATORS = re.compile(r"[=←→≤≥<>≈∈+·√ΣΠ∂∫⊙²³⁻ˣᵀ‖/|^]")
SCRIPT = "[" + "".join(UPPER) + "".join(LOWER) + "]"
INDEX = rf"_(?:\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|\([^)]*\)|(?:(?!{SCRIPT})[\w'+\-])*(?!{SCRIPT})\w)"
TOKEN = re.compile(
    rf"->|\.\.\.|\d+(?:\.\d+)?|\^(?:\([^)]*\)|-?[\w½]+(?:/\d+)?)|[ΣΠ□∫](?:{INDEX}|{SCRIPT}+)?|"
    rf"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f]|{SCRIPT})*(?:{INDEX})?'?|{INDEX}|{SCRIPT}+|\S"
)


def tex(text):
    """Return LaTeX of a formula, or None if it is not certainly a formula."""
    parts, depth, roots = [], 0, []  # roots: the bracket depth at which each open root began
    after_root = False
    for token in TOKEN.findall(text.strip()):
        if token == "√":
            after_root = True
            continue
        one = _token(token)
        if one is None:
            return None
        if after_root and token != "(":
            one = rf"\sqrt{{{one}}}"
        elif after_root:
            roots.append(depth)
            one = r"\sqrt{"
        after_root = False
        depth += (token in "([") - (token in ")]")
        if roots and token == ")" and roots[-1] == depth:
            roots.pop()
            one = "}"
        parts.append(one)
    if depth or roots or after_root:
        return None
    return _norms(re.sub(r" ([_^])", r"\1", " ".join(parts)))


def _norms(code):
    """Mark opening and closing bars of norms, because a single bar is between two vectors."""
    pieces = code.split(r"\lVert ")
    if len(pieces) == 2:
        return r"\,\Vert\,".join(pieces)
    return "".join(
        piece + ("" if i == len(pieces) - 1 else r"\lVert " if i % 2 == 0 else r"\rVert ")
        for i, piece in enumerate(pieces)
    )


def _token(token):
    """Return the LaTeX of one token, or None for a word of the sentence."""
    if token in ("...", "->"):
        return r"\dots" if token == "..." else r"\to"
    if token in SIGNS:
        return SIGNS[token]
    if token[0].isdigit() and token[0] not in UPPER and token[0] not in LOWER:
        return token
    if token[0] == "^":
        return f"^{{{tex(token[1:].removeprefix('(').removesuffix(')'))}}}"
    if token[0] in "_" or token[0] in UPPER or token[0] in LOWER:
        return _index(token) if token[0] == "_" else _scripts(token)
    base, _, index = token.partition("_")
    prime = "'" if token.endswith("'") else ""
    if token in WORDS:
        base, index = token, ""
    elif base in ROMAN and len(index) > 2:
        return None  # this is an argument's name, such as max_norm
    code = _letters(base.removesuffix("'"))
    if code is None:
        return None
    return code + (_index(f"_{index.removesuffix(prime)}") if index else "") + prime


def _index(text):
    """Return the LaTeX of an index: _ts, _{i ∈ N(j)}, _(i+d/2)."""
    bare = text[1:]
    if bare[0] in "{(":
        bare = bare[1:-1]
        words = rf"\text{{{bare}}}"
        return f"_{{{tex(bare) or words}}}"
    if re.fullmatch(r"[a-z]{3,}|ih|hh|up", bare):
        return rf"_{{\mathrm{{{bare}}}}}"
    return "_{" + " ".join(f"\\{GREEK[c]}" if c in GREEK else c for c in bare) + "}"


def _scripts(text):
    """Return the LaTeX of the text below and above a letter: ₀ˣ."""
    low = "".join(LOWER[c] for c in text if c in LOWER)
    high = "".join(UPPER[c] for c in text if c in UPPER).replace("T", r"\top")
    return (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")


def _letters(base):
    """Return the LaTeX of a word of `WORDS`, or of letters with accents and indices."""
    marks = "".join(c for c in base if c in UPPER or c in LOWER)
    plain = base.rstrip(marks) if marks else base
    if plain in SIGNS:
        return SIGNS[plain] + _scripts(marks)
    if plain in ROMAN:
        return f"\\{plain}{_scripts(marks)}"
    if plain in WORDS:
        return rf"\operatorname{{{plain}}}".replace("_", r"\_") + _scripts(marks)
    split = unicodedata.normalize("NFD", base)
    letters = re.findall(rf"([^\W\d_])([\u0300-\u036f]?)({SCRIPT}*)", split)
    several = len(letters) > 1 and not marks and not any(c in GREEK for c, _, _ in letters)
    if several and not re.fullmatch(r"d[a-zA-Z]", base):
        return None
    return " ".join(_letter(*letter) for letter in letters)


def _letter(letter, accent, marks):
    code = f"\\{GREEK[letter]}" if letter in GREEK else SIGNS.get(letter, letter)
    code = f"\\{BARS[accent]}{{{code}}}" if accent in BARS else code
    return code + _scripts(marks)


def in_sentence(text):
    """Cut the formulas out of a sentence: [(LaTeX, True) or (text, False)]."""
    pieces, at = [], 0
    for start, end in _runs(text):
        code = tex(text[start:end])
        if code is None:
            continue
        pieces += [(text[at:start], False), (code, True)]
        at = end
    return [piece for piece in [*pieces, (text[at:], False)] if piece[0]]


def _runs(text):
    """Return where the formulas of a sentence are, as the longest possible sequences of tokens."""
    found, start, end = [], None, None
    for match in TOKEN.finditer(text):
        token = match[0]
        ends = token in (";", ":") or (
            token == "." and not text[match.end() : match.end() + 1].isdigit()
        )
        if (token == "√" or _token(token) is not None) and not ends and token != "`":
            start = match.start() if start is None else start
            end = match.end()
        elif start is not None:
            found.append((start, end))
            start = None
    if start is not None:
        found.append((start, end))
    return [run for found_run in found for run in _trimmed(text, *found_run)]


def _trimmed(text, start, end):
    """Return a sequence of tokens without commas and foreign parts at its ends."""
    run = text[start:end]
    pieces, depth, last = [], 0, 0
    for i, c in enumerate(run):
        depth += (c in "([{⌊") - (c in ")]}⌋")
        if c == "," and depth == 0 and not RELATIONS.search(run[i:]):
            pieces.append((last, i))
            last = i + 1
    pieces.append((last, len(run)))
    for a, b in pieces:
        piece = run[a:b]
        piece = _without_words(piece)
        left = len(piece) - len(piece.lstrip(" ,"))
        piece = piece.strip(" ,")
        if _is_formula(piece):
            yield start + a + left, start + a + left + len(piece)


def _without_words(piece):
    """Drop an initial word that belongs to the sentence, as in 'the keys s ≤ t'."""
    match = re.match(r"[ ,]*([a-zA-Z]{2,}) (?=[^\W\d_])", piece)
    if match and match[1] in WORDS and match[1] not in ROMAN:
        return " " * match.end() + piece[match.end() :]
    return piece


def _is_formula(piece):
    balanced = all(piece.count(a) == piece.count(b) for a, b in ("()", "[]", "{}"))
    enough = len(TOKEN.findall(piece)) >= 2 and OPERATORS.search(piece)
    operands = re.search(r"[^\W\d_]", piece)
    if "..." in piece or (not RELATIONS.search(piece) and re.search(r"^\[|\w \[", piece)):
        return False  # shapes of arrays
    ends = not re.search(r"(^[=+·/≤≥<>)\]]|[=+·/≤≥<>(\[←-]$)", piece)
    return bool(balanced and enough and operands and ends)
