r"""Every limit on work and memory, and why it has its value.

Strategy: a model, a chat template, a client and a file may each be hostile or broken, so whatever they can make longer,
deeper or more is bounded.  The bounds are here, once.  A module imports what it needs, and a grammar file, which cannot
import, says the same number: `/[ \t\r\n]{1,64}/` is `MOST_BLANKS`, and a test compares them.

Not here: sizes of caches, which change no result and are where the cache is; what a screen or an inference engine can
take, which its module knows.
"""

from __future__ import annotations

# --- looking ahead in a model's text --------------------------------------------------------------------------------

# Blanks between two parts of a call. Indented JSON, the widest that templates write, has fewer; and each of them may be
# looked at again with the next delta, so the number is the cost of an endless run of blanks.
MOST_BLANKS = 64
BLANKS = rf"[ \t\r\n]{{0,{MOST_BLANKS}}}+"  # the same as an expression that never gives a blank back
# A function's name, a key, an id, a word after a bracket. The OpenAI API allows names of functions of 64 characters.
LONGEST_WORD = 64
# Closing markers of thoughts in a row, of which the first waits for what follows them; a longer row is text.
MOST_THOUGHT_CLOSERS = 8
# A comment between two values. A quote before a comment is held until the comment ends, so longer ones do not count.
LONGEST_REMARK = 256
# Blanks, a word and blanks: what is held until it is seen whether a next argument begins. 2 * 64 and a short name.
MOST_BETWEEN = 160
# The first item after a brace, held until a colon or a comma tells a dict from a set. No key of an argument is longer.
LONGEST_FIRST_ITEM = 256
# A closing bracket, a marker, and the opener of the next call with its name: together below this in every format.
MOST_AFTER_STRING = 4096
# What comes after a quote that may end a damaged string, up to the end of its call: held until it fits or not. Other
# arguments of such calls are a few lines long; a longer call ends malformed.
LONGEST_TAIL = 4096
# Text after arguments in which the end of a string is looked for that may have gone on; it waits until that is known.
MOST_AFTER_ARGUMENTS = 256
# The end of a text in which markers are looked for that follow a string: some markers, with blanks between them.
LONGEST_END_OF_STRING = 1024
# Quotes in a damaged string that may all begin further members, each in an object inside of the one before. Each is a
# scanner, and reads every character after it.
MOST_RIVALS = 16
# Characters that are read in vain to find the end of a damaged string: per character of the string, and in a row.
TAIL_WORK_PER_CHARACTER = 16
MOST_TAIL_WORK = 16 * LONGEST_TAIL
# The end of a text in which its last opening bracket is looked for: a bracket, a fence, and blanks.
MOST_TAIL = 64
# Rows that a look-ahead may visit from one marker on. Ways multiply with states; a machine with more is refused.
MOST_STEPS_AHEAD = 2_000
# Beginnings that literals share, one in another: an expression nested more deeply takes `re` long to compile.
MOST_NESTED_BEGINNINGS = 32

# --- values in a model's text ---------------------------------------------------------------------------------------

# Brackets in brackets. No tool's schema is as deep, and `json.loads`, which is recursive, still reads them.
MAX_DEPTH = 256
# Elements in elements. As above, with half the depth: each level keeps a name and an object.
MAX_ELEMENT_DEPTH = 128
# Digits of an integer: `json.loads` refuses more (sys.set_int_max_str_digits), and a complete call must be loadable.
MAX_DIGITS = 4300
# Characters after a quote in a damaged Python string, held until it is known whether it ends there: a page of code in
# the arguments after it.
MAX_UNDECIDED = 16_384
# Quotes that may all be the end of a damaged string: each is a scanner, and reads every character after it.
MOST_CANDIDATES = 16
# Open brackets that are tracked after a call broke. Deeper text ends with the next marker, or with the output.
MAX_OPEN_BRACKETS = 4096
# Characters of a key or a name in a JSON envelope, which are held. Longer ones do not begin a call.
LONGEST_ENVELOPE_TEXT = 65_536
# Characters of a key or of a bare scalar in a notation of values, which are held.
LONGEST_NOTATED_TEXT = 1024
# Characters of text without quotes in a notation of values: a few words, after which it is prose.
LONGEST_BARE_TEXT = 100
# Characters of an element's name, which is held until `>`.
LONGEST_ELEMENT_NAME = 256
# Characters at the end of a value that are compared with its closing marker, which may be damaged.
LONGEST_CLOSER = 48
# Names of arguments that are remembered to see whether one comes twice: far more than any function declares.
MOST_KEYS = 1024
# Characters of such a name, for the same memory.
LONGEST_KEY = 1024
# Characters of text in an anomaly: enough to recognise it; the message has the whole.
MOST_ANOMALY_TEXT = 1000
# A quoted call that an anomaly carries is read from so much of the text.
LONGEST_QUOTED_CALL = 65_536
# Backticks that open a fence, as in Markdown; fences inside each other, of which a model writes two or three.
LEAST_FENCE = 3
MOST_FENCES = 32
# Anomalies of a stream that keeps no message and that nobody takes: a stream without end must not grow.
MOST_UNTAKEN_ANOMALIES = 256

# --- plain whole outputs --------------------------------------------------------------------------------------------

# Characters of an output. Of a longer one, making events is a small part of the time.
LONGEST_WHOLE_OUTPUT = 65_536
# Opening brackets of an output, so that nothing in it is nested beyond MAX_DEPTH.
MOST_WHOLE_BRACKETS = 64
# Blanks beside a text: outputs that have more are rare, and the readers read them.
MOST_BLANKS_BESIDE = 4

# --- the two files of a format --------------------------------------------------------------------------------------

# Characters of a machine file, before YAML reads it: fifty times the longest shipped one.
MAX_MACHINE_TEXT = 1 << 18
# Entries of a machine file once aliases are written out, which YAML can multiply. Shipped files have up to 226.
MAX_MACHINE_ENTRIES = 10_000
# Entries in entries. Shipped files need 5.
MAX_MACHINE_DEPTH = 16
# Fragments in one machine, those of fragments included: stops fragments that import each other without end.
MAX_FRAGMENTS = 64
# Transitions that are followed to prove the order of a call, from each position once: stops a product of states.
MAX_FLOW_STEPS = 1 << 14
# Characters of a grammar file, for which Lark's own parser takes some tenths of a second.
MAX_GRAMMAR_TEXT = 1 << 15
# Rules and terminals of a grammar file: Lark's work grows faster than their number.
MAX_DEFINITIONS = 500
# Symbols of all rules and terminals with imports and repetitions written out, which can double with every line.
MAX_GRAMMAR_SIZE = 100_000
# Groups in groups: Lark is recursive over them.
MAX_GROUP_DEPTH = 64
# Grammar files that one imports, by way of others as well.
MAX_GRAMMAR_FILES = 32
# Characters of a terminal that is a run, such as a name: an unfinished one is held.
MAX_RUN = 1024
# Characters of a marker: a beginning of one is held, and its beginnings are alternatives of an expression.
MAX_MARKER = 256
# Characters over which a look-around may look: the text that it needs must still be there.
MAX_LOOK_AROUND = 256
# States of a product when grammar and machine are compared: a tenth of a gigabyte, and seconds.
MAX_LANGUAGE_STATES = 20_000

# --- tools and their schemas ----------------------------------------------------------------------------------------

# Annotations in annotations of a Python function.
MAX_ANNOTATION_DEPTH = 32
# Characters of a default value that is copied into a schema.
LONGEST_DEFAULT = 10_000
# Schemas that are looked at to find one parameter's types: references and alternatives can multiply.
MAX_SCHEMA_STEPS = 64
# Schemas in schemas on the way to a parameter.
MAX_SCHEMA_DEPTH = 16
# Faults of one call that are listed: a reader needs the first ones.
MOST_FAULTS = 20
# Patterns that are taken out of a schema because no library can run them within bounds.
MOST_PATTERNS = 50
# Characters of one fault: a validator repeats the whole value in it.
LONGEST_FAULT = 300
# Characters of a name for which a nearest one is looked for, which takes quadratic time.
LONGEST_NEAREST_NAME = 100
# Characters of a format's or model's name that are looked at, for the same reason.
LONGEST_FORMAT_NAME = 256

# --- exported grammars ----------------------------------------------------------------------------------------------

# Blanks that a grammar allows in a row: without a limit, a model may write blanks for ever. Fewer than are read.
MOST_WRITTEN_BLANKS = 32
# Parts of a schema that are checked: a large one of an API has some thousands.
MOST_SCHEMA_PARTS = 200_000
# Parts of a schema after references and alternatives are resolved, as each becomes part of a grammar.
MOST_SCHEMA_PLACES = 20_000
# Combinations of the alternatives of several keywords, which multiply.
MOST_COMBINED = 64
# Properties of one object: llguidance takes a little more.
MOST_PROPERTIES = 5000
# Objects and lists in each other: engines read a grammar by recursion, and llguidance crashes at some hundreds.
MAX_SCHEMA_NESTING = 128
# Members of an object that need not be there, each written at most once and in order; with more, they may be repeated.
MOST_OPTIONAL_MEMBERS = 64
# Repetitions that are counted: xgrammar writes each of them out, and llama.cpp refuses more than 2,000.
MOST_COUNTED = 1000
# Pairs of a place of an exported grammar and a state of the parser that a proof goes through.
MOST_PAIRS = 20_000
# Values of one enum.
MOST_ENUM_VALUES = 10_000
# Values in values of a constant: json.dumps is recursive.
MAX_CONSTANT_DEPTH = 128
# Places inside one definition, before it is made a rule of its own.
MAX_INSIDE_DEFINITION = 16
# Elements in elements: each level is written out for every parameter.
MAX_EXPORTED_ELEMENTS = 4
# Digits of a bound on a number: the grammar of a range grows with their square.
MAX_BOUND_DIGITS = 100
# Multiples of a number that are listed in place of `multipleOf`.
MOST_MULTIPLES = 256
# Groups in groups of a pattern: its reader is recursive.
MAX_PATTERN_DEPTH = 40
# Parts of a pattern, once repetitions are written out.
MOST_PATTERN_PARTS = 2000
# Repetitions of one part of a pattern: llama.cpp refuses more.
MOST_REPETITIONS = 2000

# --- chat templates, which are programs of strangers ----------------------------------------------------------------

# Seconds of the processor for one derivation, of which most templates take a tenth.
DERIVATION_SECONDS = 3.0
# Seconds for one rendering: a derivation makes dozens.
RENDERING_SECONDS = 2.0
# Characters of a template: twenty times the longest that is known.
MAX_TEMPLATE = 400_000
# Tokens of its source, which Jinja compiles.
MAX_TEMPLATE_TOKENS = 40_000
# Characters of a rendering; it holds a few short messages and the text of the template.
MAX_RENDERING = 200_000
# Characters of all renderings that one derivation keeps.
MAX_RENDERINGS = 20_000_000
# Characters that one message may add to a rendering: more is a loop.
MAX_TURN = 10_000
# Characters of a text, or items of a list, that a template makes.
MAX_SIZE = 1_000_000
# Weight of a value with all that is in it: a character counts 1, a part PART_WEIGHT.
MAX_WEIGHT = 3_000_000
# Weight of a part of a list or dict, about the memory of a reference and its share of the object.
PART_WEIGHT = 10
# Work of making a list, which takes memory however short it is.
LIST_WORK = 200
# Characters and parts that one rendering may handle: about a second of work.
MAX_WORK = 20_000_000
# Calls, loops and operators that one rendering may pass: about a second of work.
MAX_TOLLS = 500_000
# Padding, and other numbers that say how much is to be made.
MAX_WIDTH = 10_000
# Bits of an integer: multiplication is quadratic.
MAX_BITS = 4_096
# Characters that a filter reads whose time is not linear.
MAX_SEARCHED = 20_000
# Characters of a marker in a template, of which a line end counts twice in a grammar: what is longer is cut.
MAX_TEMPLATE_MARKER = MAX_MARKER // 2
# Braces that may close a dict in a rendering: each costs an attempt to decode.
MOST_DICT_ENDS = 50
# Things of a kind that are tried because the source of a template has them.
MAX_CLUES = 40
# Characters of a tokenizer's JSON file; a large one has 30 million.
MAX_TOKENIZER_FILE = 200_000_000
# Characters of a configuration file beside a template.
MAX_CONFIGURATION = 1 << 20
# Megabytes of address space of a child process that derives; most of it is never touched.
CHILD_MEGABYTES = 1024

# --- requests and answers of servers --------------------------------------------------------------------------------

# Characters of a rendered prompt: a million tokens.
MAX_PROMPT = 4_000_000
# Values in values of a message or a tool.
MAX_REQUEST_DEPTH = 64
# A number that a server counts: what every JSON reader keeps exactly.
MAX_COUNT = 2**53
# A whole number in a request, as a seed can be.
MAX_INTEGER = 2**63 - 1
# Bytes of a request that is read beside the others, in a thread and with a template of its own.
LARGE_REQUEST = 200_000
# Tools of a request for which a grammar is written, at some 2 ms each.
MOST_GRAMMAR_TOOLS = 256
# Messages of a request: a template renders all of them.
MOST_MESSAGES = 5_000
# Answers to one request (`n`), each of which is a request to the server.
MOST_ANSWERS = 8
# Stop strings of a request: each is looked for in every delta. The OpenAI API allows 4.
MOST_STOPS = 16
# Tokens of an answer if a request says nothing, as some servers would stop after 16 or 128.
MOST_ANSWER_TOKENS = 32_768
# Characters of an answer, as a server may never end.
MAX_ANSWER = 8_000_000
# Characters of one line of a server's stream: a whole answer fits into one.
MAX_STREAM_LINE = 4_000_000
# Bytes of a server's error that are read.
MAX_ERROR = 20_000
# Tokens at the end of a prompt in which the beginning of the turn is looked for. A longer last turn shows nothing.
MOST_PROMPT_TOKENS = 4096
# Tokens without a special one among them that are kept to find where the next one begins in the text.
MOST_WAITING_TOKENS = 65_536
# Ends of prompts whose state is remembered, and their length: a template writes a few short ones.
MOST_PREFIXES = 64
LONGEST_PREFIX = 256
# Tags of requests that are kept: an agent sends the same tools again and again, and few agents share a server.
MOST_TAGS = 128
# Outlines of requests that are kept: one for each format and kind of request, whatever its tools are.
MOST_OUTLINES = 64
# Parameters of functions that are kept, and the bytes of a schema up to which they are: most have 2,000, with all that
# is kept of them 50,000.
MOST_KEPT_SCHEMAS = 256
MAX_KEPT_SCHEMA = 8 << 10

# --- logs -----------------------------------------------------------------------------------------------------------

# Bytes of a batch of rows: long enough that sending it to a worker does not count, short enough to balance workers.
BATCH_BYTES = 1 << 20
# Bytes of one row. A longer one is reported as bad.
LONGEST_ROW = 64 << 20
# Rows of a batch, if they are very short.
MOST_BATCH_ROWS = 20_000
