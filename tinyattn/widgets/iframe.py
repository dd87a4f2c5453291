"""Show an interactive page in a notebook and in a deck, with a static replacement.

The page is in its own frame, without a server or a network. A stand-in below the frame is shown
where the frame is removed: in a notebook that is not trusted yet, and in its web view.
"""

import html

HOW = (
    "This is an interactive page. It does not run yet, because this notebook is not trusted. "
    "In JupyterLab, choose Trust Notebook in the command palette (menu View), or run this cell and "
    "those before it."
)
# JupyterLab reports its theme only by this attribute, which becomes `color-scheme` in the frame
DARK = "[data-jp-theme-light=false] .explorer>iframe{color-scheme:dark}"


def iframe(page, title, height, still=""):
    """Return the HTML of a notebook's output that contains a page.

    The frame and its replacement share one cell of a grid, so no space stays empty without the
    frame. If the cell has a height, as in a deck, the frame is not higher than the cell.

    Args:
        page     HTML of the page
        title    title of the frame
        height   height of the frame in pixels
        still    HTML that is shown where the frame is removed, with a sentence that explains how to
                 activate the frame
    """
    source, title = html.escape(page, quote=True), html.escape(title, quote=True)
    return (
        f"<style>{DARK}</style>"
        '<div class="explorer" style="display:grid;grid-template-rows:minmax(0,1fr);'
        'background:#fff;color:#1F2328">'
        f'<div style="grid-area:1/1;padding:8px 16px">{still}<p>{HOW}</p></div>'
        f'<iframe srcdoc="{source}" title="{title}" sandbox="allow-scripts" '
        f'style="grid-area:1/1;width:100%;height:{height}px;max-height:100%;border:0;background:#fff"></iframe>'
        "</div>"
    )
