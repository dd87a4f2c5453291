"""Settings with which Sphinx makes the site from the sources in build/site-sources."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tinyattn import __version__  # noqa: E402

project = "tinyattn"
author = "The tinyattn developers"
copyright = "the tinyattn developers, MIT licence"
release = version = __version__
language = "en"

extensions = ["myst_nb", "coursekit.site.extension"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = []

# Texts and notebooks are shown unchanged, and nothing is executed here.
nb_execution_mode = "off"
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"
myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
myst_linkify_fuzzy_links = False

html_theme = "furo"
html_title = "tinyattn"
html_static_path = [str(ROOT / "docs" / "static")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "katex"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_permalinks_icon = "#"
pygments_style = "friendly"
pygments_dark_style = "monokai"
html_theme_options = {"navigation_with_keys": False, "top_of_page_buttons": []}

# Only the machine that publishes the site knows the addresses of the project.
if os.environ.get("GITHUB_REPOSITORY"):
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    address = f"{server}/{os.environ['GITHUB_REPOSITORY']}"
    html_theme_options["footer_icons"] = [
        {"name": "Repository", "url": address, "html": "Repository", "class": ""}
    ]
