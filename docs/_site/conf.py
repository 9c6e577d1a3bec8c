"""How the pages of `docs/` become a site: as they are, with the sidebar made from the lists of `docs/index.md`.

The source folder is the repository, so that `../SECURITY.md` is a page and `../examples/tour.ipynb` a file to download.
Nothing is fetched when a page is looked at: no fonts, no scripts of others, no summaries in the search, which a browser
does not let a page read from the file system.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402  the folder is no package

project = "anyshape"
author = copyright = "The anyshape developers"  # noqa: A001  Sphinx's name for it
release = pages.version()

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/rules/*.md", "docs/maintainers/*.md", *pages.OF_THE_PROJECT]
exclude_patterns = [name.name for name in pages.ROOT.iterdir() if name.is_dir() and name.name != "docs"]
nitpicky = True

myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "furo"
html_title = f"anyshape {release}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_extra_path = [str(HERE / "extra"), *pages.made_reports()]
html_show_search_summary = False
html_show_sphinx = False
html_copy_source = False
html_theme_options: dict[str, Any] = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "github-dark"


def setup(app: Any) -> None:
    app.connect("source-read", pages.complete)
