"""The site: `sphinx-build -W -b html docs build/docs`, then build/docs/index.html."""

from importlib.metadata import version as version_of

project = "kafkajit"
release = version_of("kafkajit")
version = release.partition("+")[0]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "description"
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["alert"]
myst_heading_anchors = 3
smartquotes = False  # options contain JSON, whose quotes must stay
highlight_language = "none"  # blocks without a language are what a program prints

html_theme = "pydata_sphinx_theme"
html_title = f"kafkajit {version.partition('.dev')[0]}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The bar has search and the theme switch; the toctree's groups are in the sidebar, on all pages.
html_sidebars: dict[str, list[str]] = {"**": ["site-nav.html"]}
templates_path = ["_templates"]
html_theme_options = {
    "navbar_align": "left",
    "navbar_center": [],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = "kafkajit's authors, Apache License 2.0"  # noqa: A001  Sphinx's name
html_show_sourcelink = False
