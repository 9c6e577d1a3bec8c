"""Every budget and cap of the house, of time, memory and number, in one table: where it ends, and why there.

They hold for one search, one file or one export each. Numbers that mean something, such as tolerances, stand where they
are used.
"""

from __future__ import annotations

# ---- time, in seconds: no size and no verdict depends on it, unless it has become absurd, which is then said aloud

SECONDS_UNTIL_ABSURD = 900.0
"""Of one check or one search. What is begun is predicted to take seconds, so that a busy machine has room to spare."""
SECONDS_OF_ALL_STRATEGIES = 3600.0
"""Their number is bounded by what they have to convert; whoever waits for a refusal should not wait for hours."""

SECONDS_OF_A_TASK = 600.0
"""Of a sweep, unless it is said otherwise: the slowest of some 500 real models takes half of it."""
SECONDS_OF_A_SIZE_OF_A_GRID = 60.0
"""At most, in the mean of those that one process runs: what is stopped has told of none of them."""
SECONDS_OF_A_REHEARSAL = 20
"""Of one operator at a small size, in a copy of the process: a copy that waits for itself does so for ever."""
SECONDS_BETWEEN_LOOKS_AT_TASKS = 0.05
"""At what the processes of a sweep take: a second of looks is a thousandth of a core for each of them."""
SECONDS_OF_A_GUARD_S_END = 10.0
"""In which the guard of a task ends with all below it: it takes milliseconds, unless the task has stopped it."""
SECONDS_UNTIL_A_CLUSTER_ANSWERS = 10.0
"""Its address takes a connection or is not one: a busy head answers within a second."""
SECONDS_BETWEEN_LOOKS_AT_A_CLUSTER = 5.0
"""Where no task ends: whether nodes have come or gone."""

# ---- work, in elements that are computed: a check takes about two nanoseconds for each on one core, eager half of it

WORK_OF_A_CALL = 2**13
"""Of an operator, whatever it computes."""
WORK_OF_AN_INPUT = 2**10
"""For each element of the inputs, where operators cannot be counted."""
WORK_OF_A_VALUE = 16
"""Of an input, which is drawn and copied, or of an output, which is widened and compared."""
WORK_TO_CHECK = 3e9
"""About ten seconds."""
WORK_OF_A_FAR_SIZE = 1.5e8
"""Of one size beyond what an open range is run to: half a second, so that a few of them leave room for the rest."""
WORK_OF_A_CONVERTED_CALL = 4e6
"""A check may take as long as the conversion, which takes some milliseconds for each operator that is called."""
LITTLE_WORK = 2**25
"""A run that may be counted at larger sizes, too."""
MOST_SIZES_FORETOLD = 32
"""At which a trace's own formulas are evaluated, to say what outputs will be called: as many as a check runs."""
MUCH_WORK = 2**29
"""More is not run only to be counted."""
WORK_FOR_KEPT_STATE = 1e9
"""Small models tell at once; for a large one the search must not cost more than it may save."""
WORK_OF_A_TRIAL = 1e9
"""In eager, of a size just beyond a table or at the end of a range that is looked for: about a second."""
WORK_TO_FIND_DIMS = 2e10
"""In eager: about twenty seconds."""
MOST_CALLS_TO_LIFT = 1500
"""Of operators in one run: several static exports of more would take minutes."""
MOST_CALLS_ELSEWHERE = 4000
"""Of operators in one run: a larger model is not traced again at other sizes."""
MOST_PARTINGS_ELSEWHERE = 8
"""Assumptions that do not hold at other sizes: padding that is right everywhere breaks one or two for each dim; where
every layer decides anew it is dozens, and branches are kept before that.
"""
MOST_CALLS_OF_DECISIONS = 4000
"""Of operators in all traces at the sizes at which a decision was met."""
MOST_CALLS_OF_STRATEGIES = 50_000
"""Of operators in all conversions: a healthy model needs one, and nobody waits half an hour for a refusal."""

# ---- memory, in bytes or in elements

MOST_BYTES_TO_INFER = 2**30
"""Protobuf takes no message of 2 GB, and inference makes another one as large."""
MOST_BYTES_READ_FOR_BAKED = 4096
"""Inference looks into constants that tell a shape, and into no weights: without them it is quick."""
EXTERNAL_FROM_BYTES = 128 * 2**20
"""Weights beyond this go to a file beside the model: inline, they end at 2 GB."""
MOST_BYTES_INLINE = 2**31 - 1
"""What protobuf reads."""
SECONDS_BEFORE_ANOTHER_BOOT = 86_400.0
"""Before the folder of a process that another boot of this host began counts as left: two hosts may go by one name."""
SECONDS_FOR_A_FOLDER = 10.0
"""To wait for somebody else who puts files in the same folder, which takes an instant."""
BESIDE_THE_MODEL_FROM_BYTES = 1024
"""Smaller ones stay in the model, where tools that simplify shapes look for them."""
ROOM_FOR_THE_REST = 2**20
"""For what stands before the tensors and beside the graph."""
MOST_ELEMENTS_MADE_UP = 2**25
"""Of all inputs together: the sizes stand in a file that nobody vouches for, and two processes hold them at once; so
10^7 samples of sound are run, and all stays below 1 GB."""
BYTES_OF_BIG_WEIGHTS = 256 * 2**20
"""From which a session maps weights instead of packing them."""
MOST_BYTES_TO_PACK = 4 * 2**30
"""Of weights: a file with more is run with its weights mapped, and not once as users open it, which is said."""
COPIES_OF_PACKED_WEIGHTS = 4
"""As they are, packed, and widened where the runtime has no kernel for their type."""
LARGEST_GRAPH_WITHOUT_WEIGHTS = 32 * 2**20
"""Bytes of a model file that is read only to see how large its weights are."""
LARGEST_FOLDED_CONSTANT = 2**20
"""Bytes of a constant that ONNX Runtime may compute ahead."""
SMALL_VOLUME = 2**14
"""Elements of a call that costs little, whatever the traced one has."""
RESULTS_HELD = 4
"""As large as the largest, which a check holds at a time: measured on attention, with scores that are by far so."""
MOST_BYTES_OF_A_RUN = 8 * 2**30
"""Predicted for one size; every machine that trains models has as much."""
BYTES_OF_ANY_RUN = 512 * 2**20
"""That a stranger's file may take for its values, however little it is fed."""
VALUES_PER_INPUT = 64
"""Times the bytes of its inputs: channels of an image, and two of them at a time."""
VALUES_PER_WEIGHT = 8
"""Times the bytes of its weights: the scores of every word at every place of a text."""
FACTOR_OF_PREDICTION = 4
"""Of memory and time, as earlier runs have it, that a stranger's file may take before it is stopped."""
LONGEST_MESSAGE = 2**28
"""Bytes of JSON between a process for strangers' files and us."""
SMALL_OUTPUT = 2**16
"""Elements of a result whose model runs in float64 at little cost."""
MOST_ELEMENTS_COMPUTED = 2**23
"""A table of positions has fewer; of a weight nobody asks for the numbers."""
LARGEST_FEED = 2**28
"""Elements: a gigabyte of floats."""
LARGEST_WIDE_COPY = 256 * 2**20
"""Bytes of weights of which a second, wide copy is made as a whole."""
LARGEST_KEPT_COPY = 64 * 2**20
"""Bytes of weights of which the wide copy is kept until the export ends: twice as many."""
LARGE_OPERAND = 2**20
"""Bytes from which a tensor is not widened as a whole."""
BYTES_OF_A_BLOCK = 8 * 2**20
"""Bytes of a block: twice as long ones are hardly faster."""
MOST_BYTES_RECORDED = 512 * 2**20
"""Of all copies together: beyond, a run is followed no further."""
SMALL_STATE = 2**20
"""Elements up to which a tensor is compared by its values after every call; of more, only its version is looked at."""
LARGE_STATE = 64 * 2**20
"""Bytes of all tensors of a state from which they count as large."""
STATE_IN_FILE_FROM = 2**20
"""Bytes of a tensor that is kept in a file where the state is large."""
BYTES_OF_REMEMBERED_RUNS = 512 * 2**20
"""Beyond so many bytes of outputs, a size is run again instead."""
SHARE_OF_REMEMBERED_RUNS = 1 / 128
"""The same in units of weights that are large: outputs of the size of a vocabulary would soon be as large as they."""
MOST_ELEMENTS_OF_A_PROBE = 2**20
"""Of all inputs together: a trial is small."""
ELEMENTS_OF_A_BLOCK = 2**18
"""Of an output that is judged: 2 MB in float64, of each number that is computed of them."""
LARGEST_CAST_IN_ONE = 2**23
"""Bytes in float32 of what is cast at once, where it can be helped."""
MOST_ELEMENTS_OF_A_STATIC_EXPORT = 2**22
"""Of all inputs together: an export runs the module, and there are several."""
MOST_BYTES_TO_SEARCH = 256 * 2**20
"""Of a file in which the first wrong node is looked for."""
SMALL_WEIGHT = 1024
"""Bytes of a weight that stays in the model when the others lie beside it."""
LARGEST_SETTINGS = 64 * 2**20
"""Bytes of a checkpoint's JSON file: the list of 100,000 weights has ten million."""
FEW_WEIGHTS = 2**28
"""That a config may ask for without a file of as many bytes: a gigabyte, and configs have fields that no one reads."""
MOST_PARTS_OF_A_MODEL = 1000
"""Of one kind: layers, heads or experts, that a checkpoint's config may ask for. The deepest have as many."""
MOST_PLACES_OF_A_MODEL = 2**27
"""That it may ask for: a gigabyte as a list, and ten times what the longest text takes."""
LARGE_RECORDED_CALL = 2**28
"""Bytes of a tensor from which on it is kept as it is: a copy could take what memory is left."""

MOST_BYTES_OF_WORDS = 10**8
"""On the disk, of what a task of a sweep prints: only its last line is ever read."""
BYTES_OF_A_TASK = 12 * 10**9
"""Of a sweep, unless it is said otherwise; models of some hundred million weights take less than half."""

# ---- numbers, lengths and depths

MOST_STEPS_TO_FIT = 20_000
"""Candidates of several dims multiply: the search gives up rather than to go on before any model has run."""
SIZES_NEAR = 40
"""Around a size that are tried for a relation before those far from it."""
SECONDS_OF_A_LOOP = 2
"""Of work in the first run of a stranger's file with loops, which may have no end."""
SECONDS_OF_A_RUN = 60
"""The same of one without: it ends, but who knows when."""
SECONDS_TO_OPEN = 60
"""Of work to load a stranger's file: graphs of 100,000 nodes take some of it."""
BYTES_READ_IN_A_SECOND = 50 * 2**20
"""Of weights, for which a stranger's file gets more time: every disk does as much."""
SECONDS_BETWEEN_LOOKS = 0.01
"""At what a stranger's file takes: memory grows by tens of megabytes meanwhile."""
MOST_NODES = 100_000
"""Of a file that somebody gives, its functions expanded: the longest that were seen have a third of it."""
MOST_AXES = 64
"""Of a tensor: numpy takes no more."""
LONGEST_OFFSET = 100
"""Digits of a place in a file; Python itself makes no number of more than 4,300."""
SAMPLES_OF_A_WEIGHT = 64
"""Of large ones, by which a graph is known again."""
BYTES_OF_A_SAMPLE = 64
LONGEST_SIZE_TEXT = 2000
"""Characters of a size that a file names."""
MOST_LEAVES_OF_A_SIZE = 400
"""A file may hold any expression; a larger one is refused before sympy works on it."""
LARGEST_DIVISOR = 64
"""By which a number may be divided in a formula."""
MOST_KEYS_OF_A_TABLE = 12
"""Each is a path of its own, and there are 16 of them in one piece of code."""
DEEPEST_FORMULA = 3
"""So many forms inside of each other are looked for."""
LARGEST_RATIO = 16
"""Between two sizes that move alike."""
LONGEST_EXPRESSION = 1000
"""Characters."""
DEEPEST_EXPRESSION = 64
"""Far more than anybody writes, and far less than Python's stack; a file from elsewhere may hold anything."""
LARGEST_SIZE = 2**40
"""The largest that is looked for."""
LARGEST_POWER = 4
"""Up to here a power is written out as a product: the notation has no other way."""
MOST_CHARACTERS_COMPARED = 20_000
"""Words are compared one by one: a file that was written anew is not followed."""
MOST_DECORATOR_LINES = 50
"""Above a function that is looked for in its file."""
LARGEST_ACCEPTED_SIZE = 2**62
"""An open range ends somewhere: a `range` finds a member by arithmetic, whatever its length."""
LONGEST_CONTRACT = 1_000_000
"""Characters of a contract that is read: no model has as many inputs, and a file is data."""
LONGEST_SHORT_CONSTANT = 64
"""Numbers in a constant that tells an axis, a size or an order; weights are not read."""
MOST_NUMBERS_OF_A_SIZE_CONSTANT = 16
"""More of them are no shape: they are data."""
LARGEST_SIZE_WRITTEN_IN_A_FILE = 2**31
"""Beyond, a number says "up to the end" and is no size."""
MOST_ROWS_OF_PORTS = 12
"""Inputs or outputs that a text shows one by one."""
DEEPEST_STRUCTURE = 64
"""Far more than anybody nests, and far less than Python's stack."""
LONGEST_RUNTIME_REASON = 240
"""Characters of a runtime's message."""
MOST_ROWS_OF_TEXT = 12
"""Of inputs, of outputs and of rewrites."""
SECOND_CONTENT_UP_TO = 4
"""Times the volume of the traced call: what other values show, they show at moderate sizes."""
SECOND_CONTENT_EVERY = 3
"""Sizes: other values show little that the first do not."""
MOST_SIZES_WITH_CONTENTS = 6
"""Besides the traced one: code that decides by sizes has few paths, and each is a dozen runs."""
MOST_NUMBERS_COMPARED = 8
"""In one operand of a comparison: a longer one is data of its own."""
MOST_NUMBERS_REACHED = 4
"""Which no drawn value reaches, and for which values are made at one size: each is a run, and some to find it."""
MOST_SCALES_TRIED = 6
"""Until values lie on both sides of a number that is compared with a result: halved in powers, any scale is found."""
JITTERED_RUNS_TO_BEGIN_WITH = 4
"""After which an output that moves far less than it is wrong by is given up."""
MOST_JITTERED_RUNS = 24
"""A tie between two falls the same way in all of these once in 16 million, and flips come in combinations."""
ENOUGH_MEASURED_CALLS = 4
"""Calls for which the noise of an octave is measured; after that it hardly differs."""
FEW_ALIKE = 16
"""Elements of like magnitude; with fewer of them, those of the next octaves are asked as well."""
ENOUGH_ALIKE_TO_TELL = 4096
"""Elements of one octave whose noise is looked at."""
LARGEST_CHECKED_OPERAND = 2**24
"""Elements: an operator on larger ones counts as one that rounds, without being asked in float64."""
LARGEST_MOVED_OPERAND = 2**16
"""Elements: weights beside few values are not moved as well, these tell as much at a part of the cost."""
FEW_ENOUGH_FOR_ALL = 400
"""Sizes: where a declaration has no more, all of them are planned."""
FEWEST_SPREAD_SIZES = 6
"""That are planned between the ends of a range."""
DENSE_UP_TO = 40
"""Up to here every size stands for itself when branches are looked for."""
LARGEST_SPREAD = 4096
"""Among sizes that stand for all."""
MOST_PAIRS_SPREAD = 600
"""Of sizes of two dims that stand for all."""
OTHER_SIGNS = 4
"""With which a sum that came out exact is made again: of few numbers one in eight does by chance."""
MOST_LITERALS_OF_CODE = 8
"""Integers of a function, the smallest first, at which a size that it reads is run; and at the products of two."""
LARGEST_SUSPECT = 2**22
"""Size at which an assumption is broken on purpose."""
MOST_POINTS = 2**20
"""Choices of sizes for which a formula is computed at once: in all, a second."""
POINTS_AT_ONCE = 2**16
"""Of these, with all values of a formula in memory."""
MOST_PAIRS_RESIZED = 512
"""Pairs of sizes, of those at once, whose pixels are compared one by one."""
ROUNDED_SIZES_OF_ONE = 2
"""The smallest sizes at which rounding decides, of one place; the largest is run, too."""
MOST_DECIDED_SIZES = 16
"""At which comparisons of sizes in a file come out otherwise, for all of them together."""
MOST_ROUNDED_SIZES = 12
"""For all places of a file together."""
SIZES_COMPUTED_NEAR = 4096
"""At which a condition is computed first: a fraction of a millisecond, and most that can be broken break there."""
SIZES_COMPUTED_FAR = 2**20
"""At which a condition is computed where z3 does not know: tens of milliseconds."""
WORK_OF_Z3 = 500_000
"""By z3's own count, for one question: about a tenth of a second. Seconds would differ between machines."""
ROUNDS_OF_BREAKING = 4
"""In which sizes are looked for that break an assumption, where PyTorch fails at those found before."""
SIZES_OF_A_NUMBER = 128
"""Of a dim of which Python made a number: each may give another one."""
MOST_PATHS_FOLLOWED = 4
"""Of a model whose decisions were taken the other way and made no difference: each costs a trace."""
LARGEST_POWER_WRITTEN = 8
"""As many products in a row; an axis that is a higher power of a size is no model's."""
MOST_PIECES_OF_A_PATTERN = 3
"""Along the diagonal of a constant; more are data."""
DEEPEST_COMPUTATION = 200
"""Nodes behind each other: each takes a few calls, and Python's stack has room for a thousand."""
MOST_WALKS = 40
"""Through one file, each with one more thing known to be in the way."""
MOST_STRICT_WALKS = 12
"""In which nothing may stay unknown."""
DEEPEST_BODY = 20
"""Far more than anybody nests, and far less than Python's stack."""
MOST_READINGS_OF_A_PLACE = 8
"""Every further one may cost a walk, and the right one is hardly ever that unlikely."""
FARTHEST_SIZE_OF_A_FREED_DIM = 2**20
"""No limit is searched for beyond."""
FARTHEST_DIVISOR = 6
"""Nodes between a sum and its division: a cast, axes added and removed."""
LONGEST_NUMBERS_TOLD = 16
"""Entries of a constant that are read one by one: an axis has two pads, and few tensors have more than eight."""
FARTHEST_USER = 24
"""Nodes of ours between a table of the file and the node that needs it: a chain grows node by node."""
MOST_READINGS_OF_A_RESHAPE = 64
"""Ways in which its axes can be regrouped."""
MOST_STEPS_TO_REGROUP = 20_000
"""Factors of size 1 multiply the ways; a file of many must not stop the walk."""
MOST_NUMBERS_OF_A_SIZE_VALUE = 64
"""Far more than a shape has; a longer constant is data."""
LONGEST_REASON = 200
"""Characters of torch's reason for a failure."""
DEEPEST_STATE = 4
"""Containers inside of each other whose entries are kept."""
DEEPEST_CONTAINER = 6
"""Objects may refer to each other in circles."""
SIZES_SEARCHED_IN_ORDER = 4096
"""Every size up to here is tried; beyond it an expression is taken to grow with its dim."""
REDRAWS_OF_INTEGERS = 8
"""Until a resized tensor of integers has no sample twice that had none."""
FURTHEST_WRAPPER = 4
"""Wrappers around a module that are taken off, one after the other."""
LONGEST_CONTAINER = 64
"""Modules of a container that are looked at for one that was compiled."""
MOST_SIZES_FOR_KEPT_STATE = 8
"""Sizes at which a module is looked at for what it keeps."""
LARGEST_SIZE_OF_KEPT_STATE = 2**13
"""Sizes beyond are not tried: a run there is no small matter."""
DEEPEST_KEPT_STATE = 4
"""Containers inside of each other that are looked into."""
MOST_ENTRIES_OF_KEPT_STATE = 64
"""Entries of a container that are looked at."""
LARGEST_MULTIPLE = 128
"""The longest step between sizes that run which is looked for."""
ENOUGH_EDGES_OF_A_LIMIT = 3
"""More are not looked for, each costs a bisection; fewer than two tell no form from another."""
MULTIPLES_TO_TRY = 16
"""Steps that are tried whether or not they divide the size."""
MOST_PAIRS_THAT_BOUND_VALUES = 12
"""Products and sums of dims, each of which is asked for with a few runs of the example."""
MOST_RUNS_OUTSIDE_A_LIMIT = 48
"""Sizes that a condition excludes and that are run before it is called a limit, of a call that costs little."""
FEWEST_RUNS_OUTSIDE_A_LIMIT = 20
"""The same for large calls; most of these runs fail at once."""
REFUSALS_BY_SIZE_ALONE = 4
"""Sizes at which a model failed at one place whatever the values were: at further ones values are hardly to blame."""
MOST_RUNS_INSIDE_A_LIMIT = 12
"""Failing sizes that are moved inside each of its alternatives, to see whether they run there."""
MOST_RUNS_FOR_A_LIMIT = 120
"""Of the model, while one failing size is explained; most of them fail at once."""
MOST_ALTERNATIVES_OF_A_LIMIT = 2
"""`b == a or a == 1 or b == 1` has two; with more, it says where the model was asked, and not what it needs."""
MOST_HOLES_IN_A_DIM = 2
"""The same: limits with exceptions about the same dims, beyond which all of them are taken back."""
MOST_LIMITS_PER_PROBE = 3
"""A dim that is tied to another may still move in steps."""
FARTHEST_OUTSIDE_A_LIMIT = 8
"""Times the elements of the traced call."""
FARTHEST_TO_EXPLAIN = 16
"""Times the base's elements: why a far larger call fails would take many more of them to find out."""
ELEMENTS_TO_EXPLAIN = 2**22
"""Of a call for which that is worth it, whatever the base has."""
SMALL_SIZES_BEFORE_A_PIN = 10
"""Up to here all sizes are run before a dim is said to have one size only."""
MOST_UNEXPLAINED_FAILURES = 6
"""After so many failures without a rule, further ones are not looked into."""
MOST_NAMED_IN_A_NOTE = 3
"""Places or calls, in one sentence about a proposal."""
FURTHEST_BOUND_ASKED = 4096
"""No table of a model is followed beyond: a run there is no small matter."""
MODERATE_BOUND = 100
"""Where no table tells, a dim is tried up to here, or to some times its size."""
ROUNDS_OF_ALL_DIMS = 12
"""In which all dims of a proposal move at once."""
FAILING_ROUNDS_TOLERATED = 3
"""So few rounds may fail: two dims may be related at some of their sizes, which a check finds out."""
MOST_FORMULAS_OF_A_COLUMN = 4
"""Readings of how one size follows from others."""
MOST_STRUCTURES_OF_CALLS = 400
"""Combinations of such readings."""
FEW_NUMBERS_TO_OFFER = 4
"""Values of an axis that looks like features."""
FEW_PLACES_TO_COMBINE = 8
"""Beyond so many partners, pairs of them are not tried one by one."""
MOST_RUNS_TO_FIND = 400
"""Of the model, to find what varies in one call."""
FEWEST_RUNS_TO_FIND = 60
"""However long one takes: with fewer, little would be found."""
MOST_RUNS_FOR_EXAMPLES = 200
"""Of the model, to settle what several calls leave open."""
MOST_STILL_PLACES_TOLD = 8
"""Axes that did not move: with more, only their number is told."""
MOST_SPLITS_TOLD = 12
"""Dims that may be two: beyond, they are not asked about one by one."""
MOST_PATHS = 16
"""A piece of code is traced once for each; as many as four branches that follow each other have."""
MOST_ITEMS_UNROLLED = 64
"""Each of them is written out in the file."""
STEPS_PEELED = 4
"""The first step of a loop may differ from the others, and so may the second; a window is filled by its first steps."""
TRIAL_PASSES = 8
"""Each pass widens what the one before it has found, and there is little to widen."""
ENOUGH_SAMPLES = 12
"""Fewer could agree by chance, and a question is then torch's to answer."""
MOST_DERIVED_CONSTANTS = 10
"""Numbers behind each other that one constant is made of."""
MOST_NUMBERS_OF_A_LAW = 64
"""Of a constant whose numbers are explained one by one."""
MOST_FACTORS_OF_A_LAW = 4
"""Dims in one product."""
FEWEST_STATIC_EXPORTS = 4
"""Fewer tell no formula from another."""
STATIC_EXPORTS = 5
"""Of a module that is lifted: two numbers fit any line, and four many a formula."""
MOST_STATIC_EXPORTS_TRIED = 24
"""Sizes that are asked for a static export, until enough of them run."""
FEWEST_NODES_TO_COPY = 4
"""Below, copying costs as much as tracing."""
MOST_SIMPLIFYING_ROUNDS = 3
"""Of taking operators apart: what an operator is made of may itself have no translation."""
MOST_TRACES = 6
"""Of one model whose branches meet further out each time."""
MOST_READS_OF_A_SIZE = 20_000
"""A loop that values end may never end at sizes that its author never ran; twenty for each of a thousand steps are few
models' own."""
MOST_READS_OF_A_CALL = 10_000
"""Looks of a model's code into tensors, with values of ours: a loop that these never end is left."""
MOST_CALLS_TO_PROVOKE = 24
"""With changed values, to reach the other side of a branch."""
ENOUGH_SIZES_PER_SIDE = 2
"""At one size alone, a side may be right by chance: that of the trace is part of what is in doubt."""
MOST_SIZES_EXPLAINED = 8
"""Failing sizes that a limit of a file is fitted to."""
MOST_BAKED_SIZES_TOLD = 3
"""Numbers that stand where a size should vary, named in one finding."""
LARGEST_SIZE_ALONE = 2**31
"""A contract may claim any size; none beyond could be run."""
MOST_DIMS_ALONE = 32
"""Of a file that is checked by itself: the number of sizes to run grows with them."""
MOST_NODES_TO_SEARCH = 4000
"""Every node becomes an output when the first wrong one is looked for."""
RUNS_READ_FOR_DECISIONS = 4
"""Of each content, in which decisions on values are looked for."""
FEWEST_STEPS_OF_A_SHIFT = 4
"""Strides that must fit into an axis before its parts tell anything."""
MOST_STEPS_OF_A_SHIFT = 3
"""Strides by which an axis grows in one check."""
MOST_PERIODS_REPEATED = 3
"""Lengths at which repeated places are compared."""
FURTHEST_CAUSE = 24
"""Calls that a tensor is followed back over."""
MOST_CALLS_FOR_A_POOLING = 6
"""Between the layer and the call that flattened its input."""
MOST_VIEWS_FOLLOWED = 4
"""Between a sum and the number that scales it."""
JITTERS_FOR_MIXING = 2
"""Runs with moved roundings before samples are said to mix."""
ROUNDS_OF_DIAGNOSIS = 4
"""A number hides those behind it, so the model is looked at again with what was found in place."""
FEW_SIZE_NAMES = 8
"""Entries of a longer list are not named one by one."""
MOST_READINGS_OF_A_FILE = 24
"""Each is walked, written and checked."""
MOST_OTHER_READINGS = 3
"""Of one ambiguous place, beyond the likeliest."""
MOST_SUSPECTS_TRIED = 64
"""Numbers of a file with which it is run in another form; each takes a few runs."""
MOST_SIZES_FOR_A_SUSPECT = 4
"""Runs in which another number must have changed nothing before it is taken for one that does not matter."""
MOST_READINGS_TOLD = 3
"""Of one number: the simplest ones."""
MOST_NAMES_TOLD = 4
"""Nodes that are named one by one in an option; more are named by what their names have in common."""
MOST_SECOND_LOOKS = 8
"""At other readings, where the one that is right has a limit."""
MOST_RELATIONS_TRIED = 3
"""Between dims, as the example shows them, before one is offered: each is an export."""
MOST_DIMS_OF_A_RELATION = 4
"""A limit on more is told as it is: nobody would declare it."""
NARROWING_ROUNDS = 6
"""Of cutting off what was wrong and checking the rest."""
LONGEST_INSPECTED_TEXT = 200
"""Characters of a text from a file: a hostile one may be endless."""
MOST_INSPECTED_ROWS = 12
"""Of one kind, that a person still reads."""
MOST_EXAMPLES_TRIED = 120
"""Sizes at which a model is run in search of an example: it fails at once where it fails."""
MOST_NUMBERS_OF_A_LINE = 5
"""Of which all products are sizes to try."""
MOST_LOOKS_AT_A_LOOP = 4
"""Until the sizes that it carries from step to step are those that it began with; each look walks its body."""
SIZES_HELD_AGAINST = 3
"""Real runs that the formula of every shape in a file must have been right at."""
FEWEST_RUNS_TO_FIT = 4
"""A formula through fewer goes through anything."""
MOST_ELEMENTS_OBSERVED = 2**22
"""Of all inputs together, in runs that show shapes: small sizes show them as well."""
DEEPEST_SCOPE = 24
"""Modules inside of each other, in the name of a node: a file may have any name."""
LONGEST_TEXT_OF_A_PAGE = 2000
"""Of one name or sentence: a file may have any; the JSON of a report has all of it."""
FEWEST_ALIKE_TO_FOLD = 3
"""Modules side by side with the same operators that a picture shows as one box."""
MOST_BOXES_OF_A_PICTURE = 60
"""Of a graph: more are put into boxes of neighbours."""
MOST_CHOICES_OF_A_SIZE = 6
"""`a if ... else b` in one formula: with more, sympy takes long, and nobody reads it."""
MOST_STEPS_COMPARED = 60
"""Nodes of a file, by the memory that is held at them, of which the largest is told as a formula."""

# ---- how long a file takes

SECONDS_OF_A_TIMED_SIZE = 6.0
"""For all rounds of one size: of calls that take some milliseconds, as many as there may be."""
FEWEST_ROUNDS, MOST_ROUNDS = 10, 90
"""Of fewer, hardly anything can be told; of more, nothing else."""
WORK_OF_A_TIMED_SIZE = 2.5e7
"""Of a size that nobody asked for: about 50 ms."""
MOST_THREADS = 1024
"""That are started because somebody asks for them."""
MOST_SIZES_TIMED = 48
"""That are asked for: with a few seconds for each, some minutes."""
RUNS_PROFILED = 8
"""Of one size, to tell the nodes' shares of its time: the first warms up, and a median needs some left undisturbed."""
LEAST_SECONDS_WATCHED = 0.5
"""Of all processors together, before anything is said of what other programs took of them."""
OTHERS_TAKE_MUCH = 0.15
"""Of all processors' time, taken by other programs: then it is said."""
MOST_NODES_SHOWN = 5
"""Of a profile: those that take the most time."""

# ---- sweeps and grids

LONGEST_CAUSE = 400
"""Characters that a line of a sweep says about why: the report says the rest."""
FEWEST_TIMES = 8
"""Of entries that two sweeps have in common, before their scatter is known at all."""
SHORTEST_TIME_COMPARED = 1.0
"""Seconds: what is shorter is the start of Python and torch, and its scatter is not that of work."""
SLOWER_BY = 1.3
"""The least factor that is called slower: single runs on a shared machine differ by as much for no reason."""
SPREADS_OF_AN_OUTLIER = 4
"""Two thirds of all ratios lie within one; of 10,000 that scatter like a bell, less than one lies beyond four."""
SECONDS_NOTICED = 1.0
"""By which an entry must be slower than all others are, whatever its ratio."""
DEEPEST_COLLECTION = 8
"""Collections that are listed in one another: two that list each other would never end."""
MOST_VALUES_OF_A_COLLECTION = 2_000_000
"""Of one YAML file, with its aliases written out: 100,000 entries of twenty values, which take a second to walk."""
RETRIES_OF_A_LOST_TASK = 5
"""By a cluster whose nodes come and go; a task that ends its node each time must not take all of them."""
TASKS_PER_CORE_UNDER_WAY = 2
"""Given to a cluster: one that runs, and one that is there when it ends."""
ROOM_FOR_MEMORY = 1.25
"""Asked for beyond what an entry took before: the same work differs by some percent from run to run."""
MOST_SIZES_OF_A_GRID = 5_000_000
"""Some 40 ms each, a core works on them for two days; more are not even listed."""
WORKERS_OF_A_CLUSTER = 32
"""For whom the sizes of a grid are dealt, before a cluster is asked how many it has."""
MOST_SIZES_OF_A_TASK = 500
"""Half a minute of work: what a lost worker costs."""
FEWEST_SIZES_OF_A_TASK = 20
"""A process begins with seconds of imports, and runs a size of a small model in 40 ms."""
MOST_FAILURES_TOLD = 10
"""Of a grid: the smallest ones; a JSON document has them all."""
