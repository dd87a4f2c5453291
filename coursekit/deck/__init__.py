"""From a built notebook to a slide deck in one HTML file: `render.py` fills `deck.html.j2`."""
