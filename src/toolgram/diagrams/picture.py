"""What is drawn: boxes, edges between them, and groups of boxes. The names of all three need no quotes in any language.

The colour of a box shows what text in it means; a dashed border shows that the text is *held*; a thick one shows that
the output may end there.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Box:
    """A box: the lines of text in it, and how it looks."""

    lines: tuple[str, ...]
    meaning: str | None  # of text in it; None is structure
    held: bool = False
    end: bool = False
    group: str = ""

    @property
    def style(self) -> str:
        """The name of its style: `name_held`, `content_end`."""
        return f"{self.meaning or 'structure'}{'_held' if self.held else ''}{'_end' if self.end else ''}"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge: the lines of its label, none if it has no label."""

    lines: tuple[str, ...]
    recovery: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A diagram in no language yet. `groups` are the labels of groups, by name."""

    title: str
    initial: str
    boxes: dict[str, Box]
    edges: dict[tuple[str, str], Edge]
    groups: dict[str, str] = field(default_factory=dict)
