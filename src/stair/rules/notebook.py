"""Rules and explanations as a notebook shows them: small pieces of HTML in its own colours.

Everything that comes from the data is escaped, and there are no scripts and no colours of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

# Notebooks align the cells of tables to the right; words read better from the left.
_WORDS: Final = ' style="text-align: left"'
_FIGURE: Final = ' style="text-align: right"'


def text(content: str) -> str:
    """Text that is no markup, and that every file can hold."""
    whole = content.encode("utf-8", "replace").decode("utf-8")
    return escape("".join(c if c.isprintable() or c == " " else "\ufffd" for c in whole))


def sentence(clauses: Iterable[str], label: str, figures: str) -> str:
    """A rule in one line."""
    words = " <em>and</em> ".join(f"<b>{text(clause)}</b>" for clause in clauses)
    aside = f" <small>({text(figures)})</small>" if figures else ""
    return f'<div class="stair-rule">{words or "everything"} → {text(label)}{aside}</div>'


def listed(heading: str, lines: Iterable[str]) -> str:
    """A heading, and lines below it."""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    below = f"<ul>{items}</ul>" if items else ""
    return f'<div class="stair-explanation"><b>{text(heading)}</b>{below}</div>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """A table whose first columns are words and the others figures."""

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{_WORDS if k < words else _FIGURE}>{text(each)}</{tag}>"
            for k, each in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="stair-rules"><p>{text(caption)}</p><table><thead><tr>{cells(head, "th")}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )
