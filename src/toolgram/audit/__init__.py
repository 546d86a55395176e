"""What a server lost: the calls that it returned beside the calls that are in the text of its model.

Strategy: `served` reads a row of any server's log as what the client got, with the raw text if the log has it.
`comparing` reads the text with the format and says how the two differ. `auditing` does so for whole files, in several
processes, and adds up; the format of each model is recognised from a sample first. `page` writes the HTML file.
"""

from toolgram.audit.auditing import Audit, audit

__all__ = ["Audit", "audit"]
