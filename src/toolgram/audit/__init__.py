"""Find what a server lost: compare the calls that it returned with the calls in the text of its model.

Strategy: `served` reads a row of any server's log as what the client got, with the raw text if the log has it.
`comparing` parses the text with the format and reports the differences. `auditing` does this for whole files, in
several processes, and adds up the counts. It first recognises the format of each model from a sample. `page` writes the
HTML file.
"""

from toolgram.audit.auditing import Audit, audit

__all__ = ["Audit", "audit"]
