"""The web site: Sphinx reads what build.py has put together."""

from __future__ import annotations

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

from efhorizon import __version__

project, author, version, release = "efhorizon", "the efhorizon authors", __version__, __version__
project_copyright = author
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
html_theme = "furo"
html_title = f"efhorizon {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_logo = "_static/icon.svg"
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_extra_path = ["extra"]
html_math_renderer = "mathml"
templates_path: list[str] = []
nitpicky = True


def _inline(translator, node) -> None:  # type: ignore[no-untyped-def]
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise _skip()


def _block(translator, node) -> None:  # type: ignore[no-untyped-def]
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise _skip()


def _skip() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Sphinx) -> None:
    """Equations as MathML, which browsers render themselves: no script, no network."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
