"""Running a compiled program over one stream.

* `sink`: where events go, and the two things that are decided late: blank runs and held regions,
* `stream`: the machine's position, its transitions and their actions,
* `text_readers`, `argument_readers`, `envelope_reader`, `wreckage_reader`: how the next characters are taken, by
  what the machine expects,
* `parser`: the public face, `feed` and `close`,
* `snapshots`: a stream as JSON-able data, and back.
"""
