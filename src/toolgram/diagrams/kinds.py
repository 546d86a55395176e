"""What can be asked of a diagram: its kind and its level."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["mermaid", "dot", "svg"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Level: TypeAlias = Literal["path", "whole"]
LEVELS: tuple[Level, ...] = get_args(Level)
