"""The configuration of Sphinx for the pages here (`make docs`); our extensions are in ``extension``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from syncedmem import __version__

project = "syncedmem"
author = "The syncedmem developers"
copyright = "The syncedmem developers, BSD-2-Clause"  # noqa: A001 -- the name that Sphinx reads
version = release = __version__

extensions = [
    "myst_nb",  # and with it myst_parser
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "extension",
]
exclude_patterns = ["extension"]  # not pages
nitpicky = True

# --- pages
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]  # GitHub draws these blocks; here the model draws them

# --- the notebook
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# --- reference
default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

# --- looks
WIDE = (
    "index",
    "play",
    "machine",
    "errata",
    "errors",
    "requirements",
    "peers",
    "machines",
)  # their tables need the space of the side bar
html_theme = "pydata_sphinx_theme"
html_title = "syncedmem"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # the theme follows the reader's system until its switch is pressed
html_copy_source = False
html_theme_options = {
    "logo": {"text": "syncedmem"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_nav_level": 2,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
}
html_sidebars: dict[str, list[str]] = {"index": [], "play": [], "start": [], "concepts": []}
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
