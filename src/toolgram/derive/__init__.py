"""Deriving a format from a chat template: what the template does with messages that it is given to render.

Strategy: `analysis` finds out, by comparing renderings, how a template writes reasoning, content and calls; `messages`
renders the messages of the proof.  `synthesis` makes a grammar and a machine of the findings through a few skeletons,
`candidates` compares that format and the shipped ones that are near by what they read (`verification`), and `deriving`
puts it together.  Read the modules in the order rendering, comparing, result, conversation, reasoning, content,
reading, arguments, tools, registry, analysis, messages; then format_builder, paths, text_skeleton, json_skeleton,
tag_skeleton, value_skeleton, python_skeleton, synthesis, verification, adapting, candidates, unexplained, deriving.
"""

from toolgram.derive.analysis import analyse
from toolgram.derive.comparing import compare_variants
from toolgram.derive.errors import NotExpressible, TemplateError
from toolgram.derive.result import DiffAnalysisResult

__all__ = [
    "DiffAnalysisResult",
    "NotExpressible",
    "TemplateError",
    "analyse",
    "compare_variants",
]
