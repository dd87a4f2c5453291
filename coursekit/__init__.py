"""The workshop of the course: what turns its texts into notebooks, slides and a web site.

    cli.py     the command `tinyattn`
    build/     texts to notebooks, full runs of the claims, the pages made from all lectures
    deck/      a notebook to slides: the renderer, its template, style and scripts
    drawing/   the language in which the lectures draw networks
    site/      the web site: pages, reference, notebooks that run in the browser
    grade/     homework of a whole class, run in a sandbox and marked
    student/   what a student's commands do: `class`, `run`, `check`

The library `tinyattn` never imports this package; what a lecture's cell calls is in
`tinyattn.course`.
"""
