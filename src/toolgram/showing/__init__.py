"""Show people how a text was read: the data for it, and a page of texts that needs no network.

Strategy: `reading` is what a pane shows of one text, as JSON: the events of each delta, the message and the anomalies.
One script draws it in one style (`pane.mjs`, `style.css`). The playground, the page of a gateway and the page of an
audit have that pane; `page` returns the document of the last two, with its script and style inside.
"""

from toolgram.showing.answers import Answered
from toolgram.showing.page import page
from toolgram.showing.reading import explained, reading

__all__ = ["Answered", "explained", "page", "reading"]
