"""How a page to click through stands in a notebook, in a deck and where no scripts run.

The page is in a frame of its own, without a server or a network. Under the frame stands what is
seen where it is taken out: in a notebook that is not trusted yet, and in the web view of one.
"""

import html

HOW = (
    "This is a page to use with mouse and keys. It is asleep, as this notebook is not trusted yet. "
    "To wake it in JupyterLab: menu View, Activate Command Palette, Trust Notebook. Or run this "
    "cell and those before it."
)


def iframe(page, title, height, still=""):
    """The HTML of an output that holds a page.

    page: its HTML; title: what the frame is called; still: HTML that stands in for it where the
    frame is taken out, above the sentence that says how to wake it. Frame and stand-in share one
    cell of a grid, so that without the frame nothing stays empty; where the cell has a height, as
    in a deck, the frame has it too.
    """
    source, title = html.escape(page, quote=True), html.escape(title, quote=True)
    return (
        '<div class="explorer" style="display:grid;grid-template-rows:minmax(0,1fr);'
        'background:#fff;color:#1F2328">'
        f'<div style="grid-area:1/1;padding:8px 16px">{still}<p>{HOW}</p></div>'
        f'<iframe srcdoc="{source}" title="{title}" sandbox="allow-scripts" '
        f'style="grid-area:1/1;width:100%;height:{height}px;max-height:100%;border:0;background:#fff"></iframe>'
        "</div>"
    )
