"""Parse millions of outputs: read logs and data sets, write messages, on as many processes and machines as there are.

Strategy: three layers. `rows` answers one row, `batches` and `running` answer a batch of rows, and a runner (this
process, a pool of processes, a Ray cluster) hands batches out and takes answers back in order. A batch and its answer
are plain data of bounded size. So memory is bounded for files of any size, a batch can be read again, and finished
batches can be kept on disk until all are done. Frameworks that have their own batches call `parse_batch`.
"""

from __future__ import annotations

from toolgram.bulk.batches import arrow_schema, parse_batch, parse_batches

__all__ = ["arrow_schema", "parse_batch", "parse_batches"]
