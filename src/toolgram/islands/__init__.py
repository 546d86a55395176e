"""Island readers: the embedded languages that a machine enters and leaves.

A format's own language is regular; what it embeds is not.  Each module here reads one embedded language
incrementally, with an explicit stack, and knows nothing of machines or events:

* `json_values`: the JSON grammar at character level, passing the model's own bytes through,
* `json_strings`: JSON that was written as a JSON string,
* `json_envelope`: the JSON object around a call, read by ijson, whose events are the machine's triggers,
* `python_literals`: Python keyword arguments and literals, transcoded to JSON while they arrive,
* `wreckage`: how far a broken value reaches.
"""
