"""Run a compiled program over one stream.

* `parser`: the public interface, `feed` and `close`; `fast_path`: deltas inside text or arguments, which need no
  reader; `edges`: the prompt before an output, and the end of the output,
* `stream`: transitions, on top of `position`, the machine's position; `actions`: what transitions do. The parts of a
  position are `event_buffer` (events before they are emitted), `calls` (the open call and its arguments) and `source`
  (characters that no event accounts for yet),
* `readers`: the one table from what the machine expects to the function that reads it: `text_readers`,
  `envelope_reader`, `argument_readers`, `python_readers`, `value_readers` (of tagged arguments), `repaired_readers`
  (JSON that needs repair), `recovery_readers` (what is left of a broken value), `mentions`. `damaged_values` and
  `damaged_markers` say what has two readings, `ends_of_strings` what may not be text of a string,
* `following`: where blanks end, and what shows that arguments have not ended,
* `surplus_closers`: closers after a call that close nothing, and calls after the end of their list,
* `mentions`, `withheld`, `code_marks`: calls that are only mentioned; `special_tokens`: markers by token id,
* `anomaly_log`: anomalies with their places,
* `snapshots`: dump a stream as JSON-able data, and load it,
* `whole_outputs`: the message of a plain whole output without events, with `whole_places` and `whole_values`.
"""
