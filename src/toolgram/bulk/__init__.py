"""Millions of outputs: logs and data sets in, messages out, on as many processes and machines as there are.

Strategy: three layers.  `rows` answers one row, `batches` and `running` answer a batch of rows, and a runner (this
process, a pool of processes, a Ray cluster) hands batches out and takes answers back in order.  A batch and its answer
are plain data of bounded size, so memory is bounded whatever the files are, a batch can be read again, and finished
ones can lie on disk until all are there.  Frameworks that have their own batches call `parse_batch`.
"""

from __future__ import annotations

from toolgram.bulk.batches import arrow_schema, parse_batch, parse_batches

__all__ = ["arrow_schema", "parse_batch", "parse_batches"]
