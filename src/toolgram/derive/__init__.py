"""Derive a format from a chat template by observing how the template renders messages.

Strategy: `analysis` compares renderings to find how a template writes reasoning, content and calls; `messages` renders
the messages of the proof. `synthesis` makes a grammar and a machine from the findings with a few skeletons,
`candidates` compares how that format and similar shipped ones parse, and `deriving` combines the
steps. Read the modules in the order rendering, comparing, result, conversation, reasoning, content, reading, arguments,
tools, registry, analysis, messages; then format_builder, text_skeleton, json_skeleton, tag_skeleton, value_skeleton,
python_skeleton, synthesis, adapting, candidates, unexplained, deriving.
"""

from toolgram.derive.analysis import analyse
from toolgram.derive.errors import NotExpressible, TemplateError
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import DiffAnalysisResult

__all__ = ["ChatTemplate", "DiffAnalysisResult", "NotExpressible", "TemplateError", "analyse"]
