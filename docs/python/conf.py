"""The site: ``python3 -m sphinx -W docs/python target/python/site``, with what requirements.txt names and tiepoint."""

import os

import tiepoint

os.environ.setdefault("MPLBACKEND", "agg")

project = "tiepoint"
version = release = tiepoint.__version__
copyright = "the authors of tiepoint"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples/*"]
myst_enable_extensions = ["colon_fence"]
# The benchmark page is the repository's own, and links to files that are not part of the site.
suppress_warnings = ["myst.xref_missing", "config.cache"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"^_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = "tiepoint"
html_static_path = ["_static"]
html_css_files = ["tiepoint.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "quick_start", "benchmarks")}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "logo": {"text": "tiepoint"},
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
}
