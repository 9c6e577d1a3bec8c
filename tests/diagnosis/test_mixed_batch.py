"""Models whose samples meet, each with the expression where they do; and models that look alike and are healthy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from anyshape.diagnosis.mixed_batch import mixed_samples
from anyshape.model import oracle as references
from anyshape.model.request import understand
from anyshape.source.spans import source_line, span_of_definition
from anyshape.torchkit.state import untouched

ROWS, STEPS, IMAGES = {"x": "batch 6"}, {"x": "batch seq 8"}, {"x": "N 3 8 8"}

torch.manual_seed(0)
attend = nn.MultiheadAttention(8, 2)
encode = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1, enable_nested_tensor=False)
encode_rows = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
recur = nn.LSTM(8, 8)
recur_rows = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
gated_rows = nn.GRU(8, 8, batch_first=True)
step = nn.GRUCell(6, 6)
statistics = nn.BatchNorm1d(6, track_running_stats=False)
kept_statistics = nn.BatchNorm2d(3)
convolve = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten())
project = nn.Linear(8, 8)
heads = nn.Sequential(nn.Linear(6, 4), nn.Softmax(dim=0))
bags = nn.EmbeddingBag(10, 4)
deep = nn.ModuleList(nn.Linear(6, 6) for _ in range(40))
table = nn.Parameter(torch.randn(50, 1, 8))
for layer in (attend, encode, encode_rows, recur, recur_rows, gated_rows, step, statistics, kept_statistics, convolve):
    layer.eval()


def findings_of(model, args, dims, *, sizes=None, make_inputs=None):
    request = understand(model, args, None, dims=dims, sizes=sizes, make_inputs=make_inputs)
    with untouched(request.target.module):
        made = (request.target, request.signature, request.spec)
        reference = (
            references.from_example(*made, seed=0)
            if make_inputs is None
            else references.from_make_inputs(*made, make_inputs, seed=0)
        )
        return mixed_samples(reference, request.spec, request.spec.example, span_of_definition(request.target.source))


def underlined(finding):
    return source_line(finding.span)[finding.span.column - 1 : finding.span.end_column - 1]


# ---- samples meet


def view_on_the_wrong_axis(x):
    return x.view(6, -1).softmax(0).t()


def softmax_over_samples(x):
    return torch.softmax(x * 2, 0)


def softmax_layer_over_samples(x):
    return heads(x) + 1


def centred_by_all(x):
    peak = x.abs().max()  # a mixture that ends in an output of its own
    x = x.relu()
    return x - x.mean(), peak


def scaled_by_a_number(x):
    peak = x.abs().max().item()
    return x / peak


def running_sum(x):
    return x.cumsum(0)


def sorted_samples(x):
    return x.sort(dim=0).values


def forgotten_batch_first(x):
    x = project(x)
    y, _ = attend(x, x, x)
    return y


def encoder_without_batch_first(x):
    return encode(x).mean(1)


def lstm_without_batch_first(x):
    y, _ = recur(x)
    return y[:, -1]


def gru_with_batch_first_too_many(x):
    return gated_rows(x)[0]


def flattened_in_another_order(x):
    batch, seq, width = x.shape
    flat = x.transpose(0, 1).reshape(batch * seq, width).tanh()
    return flat.view(batch, seq, width)


def transposed_and_reshaped(x):
    return x.T.reshape(x.shape) * 2


def heads_in_the_wrong_order(x):
    batch, seq, width = x.shape
    q = project(x).view(seq, batch, 2, 4).permute(1, 2, 0, 3)
    return ((q @ q.mT).softmax(-1) @ q).transpose(1, 2).reshape(batch, seq, width)


def statistics_of_the_batch(x):
    return statistics(x)


def weights_by_distance(x):
    weights = torch.cdist(x, x)
    return torch.softmax(-weights, -1) @ x


def carried_state(x):
    h, out = torch.zeros(1, 6), []
    for i in range(x.shape[0]):
        h = step(x[i : i + 1], h)
        out.append(h)
    return torch.cat(out)


def written_to_a_view(x):
    y = x.clone()
    y[1:].add_(x[:-1])
    return y


def positions_along_the_batch(x):
    return x + table[: x.size(0)]


def colour_statistics(x):
    mean = x.mean((0, 2, 3), keepdim=True)
    return x - mean


def attention_between_samples(x):
    x = x.transpose(0, 1)
    return F.scaled_dot_product_attention(x, x, x).transpose(0, 1)


def halves_of_the_batch(x):
    a, b = x.chunk(2, 0)
    return torch.cat((a + b, a - b))


@dataclass(frozen=True)
class Mixes:
    model: Any
    where: str
    dims: dict[str, str] = field(default_factory=lambda: ROWS)
    example: torch.Tensor = field(default_factory=lambda: torch.randn(3, 6))
    help: str | None = None
    sizes: dict[str, str] | None = None


def along(name, dim="batch"):
    return f"let `{name}` work along another axis than that of `{dim}`"


def keeps_order(name):
    return (
        f"`{name}` keeps the order of the elements: let `batch` stay the axis that it is, "
        "and move axes with transpose or permute"
    )


def batch_first(layer, wanted):
    return f"make the {layer} layer with batch_first={wanted}: it takes the axis of `batch` for the sequence"


TOKENS = torch.randn(3, 5, 8)
MIXING = [
    Mixes(view_on_the_wrong_axis, "x.view(6, -1)", help=keeps_order("view")),
    Mixes(softmax_over_samples, "torch.softmax(x * 2, 0)", help=along("softmax")),
    Mixes(softmax_layer_over_samples, "heads(x)", help=along("softmax")),
    Mixes(centred_by_all, "x.mean()", help="give `mean` a `dim`: without one it takes all samples together"),
    Mixes(scaled_by_a_number, "x / peak"),
    Mixes(running_sum, "x.cumsum(0)", help=along("cumsum")),
    Mixes(sorted_samples, "x.sort(dim=0)", help=along("sort")),
    Mixes(forgotten_batch_first, "attend(x, x, x)", STEPS, TOKENS, batch_first("attention", True)),
    Mixes(encoder_without_batch_first, "encode(x)", STEPS, TOKENS, batch_first("attention", True)),
    Mixes(lstm_without_batch_first, "recur(x)", STEPS, TOKENS, batch_first("recurrent", True)),
    Mixes(
        gru_with_batch_first_too_many, "gated_rows(x)", {"x": "seq b 8"}, TOKENS,
        batch_first("recurrent", False).replace("`batch`", "`b`"),
    ),
    Mixes(flattened_in_another_order, "flat.view(batch, seq, width)", STEPS, TOKENS, keeps_order("view")),
    Mixes(transposed_and_reshaped, "x.T.reshape(x.shape)", help=keeps_order("reshape")),
    Mixes(
        heads_in_the_wrong_order, "project(x).view(seq, batch, 2, 4)", STEPS, torch.ones(3, 5, 8), keeps_order("view")
    ),
    Mixes(
        statistics_of_the_batch, "statistics(x)",
        help="keep running statistics (track_running_stats=True), or normalise each sample alone (nn.GroupNorm)",
    ),
    Mixes(weights_by_distance, "torch.softmax(-weights, -1)", help=along("softmax")),
    Mixes(carried_state, "step(x[i : i + 1], h)"),
    Mixes(written_to_a_view, "y[1:].add_(x[:-1])"),
    Mixes(positions_along_the_batch, "table[: x.size(0)]", STEPS, TOKENS),
    Mixes(colour_statistics, "x.mean((0, 2, 3), keepdim=True)", IMAGES, torch.randn(2, 3, 8, 8), along("mean", "N")),
    Mixes(
        attention_between_samples, "F.scaled_dot_product_attention(x, x, x)", STEPS, TOKENS,
        "put the axis of `batch` first: attention looks along the last axis but one",
    ),
    Mixes(halves_of_the_batch, "x.chunk(2, 0)", example=torch.randn(4, 6), sizes={"batch": "2..8 step 2"}),
]  # fmt: skip


@pytest.mark.parametrize("case", MIXING, ids=lambda case: case.model.__name__)
def test_names_the_expression_where_samples_meet(case):
    (finding,) = findings_of(case.model, (case.example,), case.dims, sizes=case.sizes)
    assert underlined(finding) == case.where
    assert finding.span.function == case.model.__name__
    assert finding.helps == (() if case.help is None else (case.help,))


def test_the_whole_warning_reads():
    (finding,) = findings_of(softmax_over_samples, (torch.randn(4, 6, generator=torch.manual_seed(0)),), ROWS)
    line = finding.span.line
    assert (
        str(finding)
        == f"""\
warning[mixed-batch]: samples of `batch` are mixed
   --> tests/diagnosis/test_mixed_batch.py:{line}:12 in softmax_over_samples
   |
{line} |     return torch.softmax(x * 2, 0)
   |            ^^^^^^^^^^^^^^^^^^^^^^^ the result of one sample depends on others here
   = note: f(cat(a, b)) differs from cat(f(a), f(b)): `output` of a sample moves by 0.99 when another stands beside it
   = help: let `softmax` work along another axis than that of `batch`"""
    )
    assert finding.dims == ("batch",)
    assert finding.level == "warning"
    assert finding.origin == "model"
    assert finding.breaks_at == {"batch": 3}


def test_what_only_earlier_samples_do_is_said():
    (finding,) = findings_of(carried_state, (torch.randn(3, 6, generator=torch.manual_seed(0)),), ROWS)
    assert finding.notes == (
        "f(cat(a, b)) differs from cat(f(a), f(b)): `output` of a sample moves by 0.19 when another stands before it",
    )


def test_each_output_has_its_own_place():
    def model(x):
        return F.normalize(x, dim=0), x.argmax(0), x * 2, x.argsort(0)

    floats, integers = findings_of(model, (torch.randn(4, 6),), ROWS)
    assert [underlined(floats), underlined(integers)] == ["F.normalize(x, dim=0)", "x.argsort(0)"]
    assert integers.notes == (
        "f(cat(a, b)) differs from cat(f(a), f(b)): `output.3` of a sample changes when another stands beside it",
    )


def test_an_infinite_distance_is_no_number():
    (finding,) = findings_of(lambda x: x.masked_fill(x < x.mean(0), -torch.inf), (torch.randn(4, 6),), ROWS)
    assert finding.notes == (
        "f(cat(a, b)) differs from cat(f(a), f(b)): `output` of a sample changes when another stands beside it",
    )


def test_a_layer_without_code_of_the_users_is_named_at_home():
    (finding,) = findings_of(nn.LSTM(8, 8).eval(), (TOKENS,), {"input": "batch seq 8"})
    assert finding.span.function == "LSTM.forward"
    assert finding.label == ""
    assert finding.helps == (batch_first("recurrent", True),)


# ---- healthy ones


def padded_encoder(x, pad):
    return encode_rows(x, src_key_padding_mask=pad)


def sequence_first(x, pad):
    return encode(x, src_key_padding_mask=pad), recur(x)


def packed(x, lengths):
    rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=True)
    out, (h, _) = recur_rows(rows)
    return *nn.utils.rnn.pad_packed_sequence(out, batch_first=True), h


def images(x):
    return convolve(kept_statistics(x))


def cached(x, key, value):
    q = x.view(-1, 2, 1, 4)
    key, value = torch.cat((key, q), 2), torch.cat((value, q), 2)
    return F.scaled_dot_product_attention(q, key, value).flatten(1), key, value


def neighbours(x, edges):
    return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])


def cloud(x):
    return torch.cdist(x, x).softmax(-1) @ x


def similarity(image, text):
    image, text = F.normalize(image, dim=-1), F.normalize(text, dim=-1)
    return image @ text.T, image, text, (image * text).mean()


def best(x):
    values, places = x.mean(-1).topk(2, dim=1)
    return values, places, x.gather(1, places.unsqueeze(-1).expand(-1, -1, 8))


def positives(x):
    return (x > 0).nonzero(), x[x > 0], x.relu()


def numbered(x):
    i = torch.arange(x.shape[0])
    return torch.cat((i.float().unsqueeze(1), x), 1), i, i * 6 + x.argmax(1)


def one_by_one(x):
    return torch.stack([row.cumsum(0) for row in x])


def merged_heads(x):
    batch, seq, width = x.shape
    q = project(x).view(batch, seq, 2, 4).transpose(1, 2).reshape(batch * 2, seq, 4)
    y = torch.bmm(torch.bmm(q, q.mT).softmax(-1), q)
    return y.view(batch, 2, seq, 4).transpose(1, 2).reshape(batch, seq, width)


def time_major_tokens(x):
    return x.transpose(0, 1).reshape(-1, 8)


def chaotic(x):
    for layer in deep:
        x = torch.sin(20 * layer(x))
    return x, x.argmax(-1)


def masked_mean(x, lengths):
    mask = (torch.arange(x.shape[1]) < lengths.unsqueeze(1)).unsqueeze(-1)
    longest = int(lengths.max())
    return (x * mask)[:, :longest].sum(1) / lengths.unsqueeze(1)


def told_its_size(x, count):
    return x.view(count, 2, 3).sum(1)


def bags_of_words(words, offsets):
    return bags(words, offsets)


def counted_spans(x, lengths):
    ends = lengths.cumsum(0)
    sums = F.pad(x.cumsum(0), (0, 0, 1, 0))
    return sums[ends] - sums[ends - lengths]


PAD = torch.arange(5) >= torch.tensor([[5], [3], [2]])
LENGTHS = torch.tensor([5, 3, 2])
EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])
PAST = torch.randn(3, 2, 4, 4)
HEALTHY = [
    (padded_encoder, {"x": "batch seq 8", "pad": "batch seq"}, (TOKENS, PAD)),
    (sequence_first, {"x": "seq batch 8", "pad": "batch seq"}, (TOKENS.transpose(0, 1).contiguous(), PAD)),
    (packed, {"x": "batch seq 8", "lengths": "batch"}, (TOKENS, LENGTHS)),
    (images, {"x": "n 3 h w"}, (torch.zeros(1, 3, 8, 8),)),
    (cached, {"x": "bs 8", "key": "bs 2 past 4", "value": "bs 2 past 4"}, (torch.randn(3, 8), PAST, PAST + 1)),
    (neighbours, {"x": "nodes 6", "edges": "2 edges"}, (torch.randn(4, 6), EDGES)),
    (neighbours, {"x": "N 6", "edges": "2 edges"}, (torch.randn(4, 6), EDGES)),
    (cloud, {"x": "n 3"}, (torch.randn(9, 3),)),
    (cloud, {"x": "points_in_batch 3"}, (torch.randn(9, 3),)),
    (similarity, {"image": "batch 6", "text": "batch 6"}, (torch.randn(3, 6), torch.randn(3, 6))),
    (similarity, {"image": "image_batch 6", "text": "image_batch 6"}, (torch.randn(3, 6), torch.randn(3, 6))),
    (best, STEPS, (TOKENS,)),
    (positives, ROWS, (torch.randn(3, 6),)),
    (numbered, ROWS, (torch.randn(3, 6),)),
    (one_by_one, STEPS, (TOKENS,)),
    (merged_heads, STEPS, (TOKENS,)),
    (time_major_tokens, STEPS, (TOKENS,)),
    (chaotic, ROWS, (torch.randn(3, 6),)),
    (masked_mean, {"x": "batch seq 8", "lengths": "batch"}, (TOKENS, LENGTHS)),
    (told_its_size, {"x": "batch 6", "count": "batch"}, (torch.randn(3, 6), 3)),
    (bags_of_words, {"words": "words", "offsets": "batch"}, (torch.arange(9), torch.tensor([0, 3, 5]))),
    (counted_spans, {"x": "steps 6", "lengths": "batch"}, (torch.randn(10, 6), LENGTHS)),
]


@pytest.mark.parametrize(("model", "dims", "args"), HEALTHY, ids=lambda value: getattr(value, "__name__", ""))
def test_says_nothing_about_a_healthy_model(model, dims, args):
    assert findings_of(model, args, dims) == []


def test_a_part_that_does_not_run_is_no_finding():
    assert findings_of(lambda x: x.view(3, 2, 3).softmax(0).flatten(1), (torch.randn(3, 6),), ROWS) == []


def test_padding_alone_that_differs_is_no_finding():
    """Samples are cut to the longest of the batch: only ragged contents show it, and the example has none."""

    def model(x, valid):
        return (x * valid.any(0).unsqueeze(1)).mean(1)

    assert (
        findings_of(model, (TOKENS, torch.ones(3, 5, dtype=torch.bool)), {"x": "batch seq 8", "valid": "batch seq"})
        == []
    )


def test_what_comes_right_again_is_not_blamed():
    def model(x):
        order = x[:, 0].argsort()
        x = x[order][order.argsort()]
        y = x.cumsum(0)
        y.copy_(x)
        return y.softmax(0)

    (finding,) = findings_of(model, (torch.randn(3, 6),), ROWS)
    assert underlined(finding) == "y.softmax(0)"


def test_the_fast_path_of_attention_is_no_mixture():
    """It is taken for masks whose padding lies at the end, and by the whole batch or not at all."""

    def make_inputs(batch):
        pad = torch.arange(5) >= torch.arange(batch).unsqueeze(1) + 3
        pad[-1] = pad[-1].flip(0) if batch > 1 else pad[-1]
        pad[-1, 0] = True
        return torch.randn(batch, 5, 8), pad

    dims = {"x": "batch 5 8", "pad": "batch 5"}
    assert findings_of(padded_encoder, make_inputs(3), dims, make_inputs=make_inputs) == []


def test_inputs_of_make_inputs_are_cut_as_well():
    def make_inputs(batch):
        return (torch.randn(batch, 6),)

    (finding,) = findings_of(running_sum, (torch.randn(3, 6),), ROWS, make_inputs=make_inputs)
    assert underlined(finding) == "x.cumsum(0)"


def test_a_healthy_model_costs_few_runs():
    runs = []

    class Counts(nn.Module):
        def forward(self, x):
            counted(runs)
            return x * 2

    def counted(runs):
        runs.append(len(runs))

    assert findings_of(Counts().eval(), (torch.randn(3, 6),), ROWS) == []
    assert len(runs) == 4


def test_fast_paths_are_as_before_afterwards():
    findings_of(padded_encoder, (TOKENS, PAD), {"x": "batch seq 8", "pad": "batch seq"})
    assert torch.backends.mha.get_fastpath_enabled()
