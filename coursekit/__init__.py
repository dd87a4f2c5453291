"""The tools of the course, which turn its texts into notebooks, slides and a web site.

    cli.py     the command `tinyattn`
    make.py    `tinyattn build`: all that is made from the texts
    bundle.py  `tinyattn bundle`: what a lecturer gives to the class
    build/     texts to notebooks, full runs of the claims, the pages made from all lectures
    deck/      a notebook to slides: the renderer, its template, style and scripts
    drawing/   the language in which the lectures draw networks
    site/      the web site: pages, reference, notebooks that run in the browser
    grade/     homework of a whole class, run in a sandbox and marked
    student/   the student's commands: `class`, `run`, `check`

The library `tinyattn` never imports this package. The functions that the cells of a lecture call
are in `tinyattn.course`.
"""
