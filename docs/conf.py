"""The site: `sphinx-build -W -b html docs build/docs`, then build/docs/index.html."""

project = "kafkajit"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "description"
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["alert"]
myst_heading_anchors = 3
smartquotes = False  # options are written in JSON

html_theme = "pydata_sphinx_theme"
html_title = "kafkajit"
html_sidebars: dict[str, list[str]] = {"**": []}  # all pages are in the bar above
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
html_show_sourcelink = False
