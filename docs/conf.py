"""The site: ``python3 -m sphinx -W docs target/python/site``, with what requirements.txt names and tiepoint."""

import os
import pathlib
import shutil

import tiepoint as tp

os.environ.setdefault("MPLBACKEND", "agg")

HERE = pathlib.Path(__file__).parent
PHOTOGRAPHS = HERE.parent / "crates/tiepoint-cli/src/commands/demo/photographs"
# Examples read what `tiepoint demo` writes, and so do the notebooks that are made of them.
for photograph in PHOTOGRAPHS.glob("*.jpg"):
    (HERE / "examples/tiepoint-demo").mkdir(exist_ok=True)
    shutil.copy(photograph, HERE / "examples/tiepoint-demo")

project = "tiepoint"
version = release = tp.__version__
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
#: The last are records for developers.
exclude_patterns = ["examples/*", "pandora/*", "notebook/*", "claims.md", "trust.md", "card.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Pages link to files of the repository that are not part of the site.
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
    "first_notebook_cell": """# The pictures: the command `tiepoint demo` writes them.
import pathlib, subprocess

if not pathlib.Path("tiepoint-demo").exists():
    subprocess.run(["tiepoint", "demo"], check=True)
%matplotlib inline""",
}

html_theme = "pydata_sphinx_theme"
html_title = "tiepoint"
html_static_path = ["_static"]
html_css_files = ["tiepoint.css"]
html_show_sourcelink = False
ALONE = ("index", "start", "when_it_fails", "outputs", "files", "report", "benchmarks", "glossary")
html_sidebars = {page: [] for page in ALONE}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "logo": {"text": "tiepoint"},
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "benchmarks": []},
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
}


def live_report(app, error):
    """The report that the page about reports shows."""
    if error is None:
        left, right = (tp.read(PHOTOGRAPHS / f"bookshelf-{side}.jpg") for side in ("left", "right"))
        sift = tp.Sift(root=True)
        tie = tp.tie_points(sift.detect(left), sift.detect(right), "fundamental")
        names = ("bookshelf-left.jpg", "bookshelf-right.jpg")
        tp.report(tie, app.outdir / "_static/live.html", images=(left, right), names=names, limit=2_000_000)


def setup(app):
    app.connect("build-finished", live_report)
