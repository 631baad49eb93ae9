"""Sphinx: ``python3 -m sphinx docs/python target/python/site`` with sphinx, pydata-sphinx-theme, numpydoc, myst-parser."""

import tiepoint

project = "tiepoint"
version = release = tiepoint.__version__
copyright = "the authors of tiepoint"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "numpydoc", "myst_parser"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
myst_enable_extensions = ["dollarmath"]
autosummary_generate = False
numpydoc_show_class_members = False
autodoc_typehints = "none"
nitpicky = False
