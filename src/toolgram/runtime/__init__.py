"""Run a compiled program over one stream.

* `position`: the machine's position in a stream; `stream`: its transitions; `actions`: what they do. The parts are
  `event_buffer` (events before they are emitted, blank runs, the held region), `calls` (the open call and its
  arguments) and `source` (characters that were taken and that no event accounts for yet),
* `readers`: the one table from what the machine expects to the function that reads it: `text_readers`,
  `argument_readers`, `envelope_reader`, `value_readers`, `recovery_readers`,
* `parser`: the public interface, `feed` and `close`; `fast_path`: deltas inside text or arguments, which need no
  reader; `edges`: the prompt before an output, and the end of the output,
* `whole_outputs`: the message of a plain whole output without events, and `whole_values`: the values in it,
* `surplus_closers`: closers after a call that close nothing; `late_calls`: calls after the end of their list,
* `anomaly_log`: anomalies, with their places,
* `snapshots`: dump a stream as JSON-able data, and load it,
* `special_tokens`: markers that count only if their token was emitted; `blanks`: where blanks end,
* `expectations`: what could have followed, for a trace.
"""
