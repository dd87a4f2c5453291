"""Turn a built notebook into a slide deck in one HTML file. `render.py` fills `deck.html.j2`."""
