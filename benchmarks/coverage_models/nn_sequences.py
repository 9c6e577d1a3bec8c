"""torch.nn over sequences: recurrent layers, attention, transformers, spectra, and small models made of them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from coverage_models.entry import Entry, Input, floats, ids, model, own, plain, ragged, under

FIRST = {"input": floats("batch seq 6")}
"""Batch first."""
SECOND = {"input": floats("seq batch 6")}


def recurrent() -> list[Entry]:
    found = []
    for kind in (nn.RNN, nn.LSTM, nn.GRU):
        name = kind.__name__.lower()
        found += [
            plain(name, lambda k=kind: k(6, 8), SECOND),
            plain(f"{name} batch_first", lambda k=kind: k(6, 8, batch_first=True), FIRST),
            plain(f"{name} 2 layers", lambda k=kind: k(6, 8, 2, batch_first=True), FIRST),
            plain(f"{name} bidirectional", lambda k=kind: k(6, 8, batch_first=True, bidirectional=True), FIRST),
            plain(f"{name} 2 layers bidirectional", lambda k=kind: k(6, 8, 2, bidirectional=True), SECOND),
        ]
    state = {"input": floats("batch seq 6"), "hx": floats("2 batch 8")}
    return [
        *found,
        plain("rnn relu", lambda: nn.RNN(6, 8, nonlinearity="relu", batch_first=True), FIRST),
        plain("lstm proj_size", lambda: nn.LSTM(6, 8, proj_size=4, batch_first=True), FIRST),
        plain("lstm without bias", lambda: nn.LSTM(6, 8, bias=False, batch_first=True), FIRST),
        plain("rnn h0", lambda: nn.RNN(6, 8, 2, batch_first=True), state),
        plain("gru h0", lambda: nn.GRU(6, 8, 2, batch_first=True), state),
        own("lstm states", lambda: nn.LSTM(6, 8, 2, batch_first=True), _states,
            {"input": "batch seq 6", "hx": "2 batch 8"}, own_inputs=False),
        plain("gru_cell", lambda: nn.GRUCell(6, 8), {"input": floats("batch 6"), "hx": floats("batch 8")}),
        plain("lstm_cell", lambda: nn.LSTMCell(6, 8), {"input": floats("batch 6")}),
        own("lstm packed", lambda: model(_packed, rnn=nn.LSTM(6, 8, batch_first=True)), _lengths,
            {"x": "batch seq 6", "lengths": "batch"}, seq=(5, 2, 8, 12)),
        own("gru packed", lambda: model(_packed, rnn=nn.GRU(6, 8, batch_first=True)), _lengths,
            {"x": "batch seq 6", "lengths": "batch"}, seq=(5, 2, 8, 12)),
        plain("gru_cell loop", lambda: model(_cell_loop, cell=nn.GRUCell(6, 8)), {"x": floats("batch seq 6")}),
        plain("rnn classifier", lambda: model(_tutorial, rnn=nn.RNN(6, 8, batch_first=True), head=nn.Linear(8, 3)),
              {"x": floats("batch seq 6")}),
        plain("lstm tagger", lambda: nn.Sequential(nn.Embedding(50, 6), _Outputs(nn.LSTM(6, 8, batch_first=True)),
              nn.Linear(8, 4)), {"input": ids("batch seq")}),
    ]  # fmt: skip


class _Outputs(nn.Module):
    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x):
        return self.rnn(x)[0]


def _states(batch: int, seq: int):
    return torch.randn(batch, seq, 6), (torch.randn(2, batch, 8), torch.randn(2, batch, 8))


def _lengths(batch: int, seq: int):
    return torch.randn(batch, seq, 6), torch.tensor([seq - i % seq for i in range(batch)])


def _packed(self, x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


def _cell_loop(self, x):
    state = x.new_zeros(x.size(0), 8)
    found = []
    for step in range(x.size(1)):
        state = self.cell(x[:, step], state)
        found.append(state)
    return torch.stack(found, 1)


def _tutorial(self, x):
    state = torch.zeros(1, x.size(0), 8)
    return self.head(self.rnn(x, state)[0][:, -1])


# ---- attention


def _square(shape: list[int]) -> torch.Tensor:
    return nn.Transformer.generate_square_subsequent_mask(shape[-1])


def _cubic(shape: list[int]) -> torch.Tensor:
    return torch.randn(shape)


def _holes(shape: list[int]) -> torch.Tensor:
    return ~ragged(*shape)


SELF_MASK = Input("seq seq", _square)
HOLES = Input("batch seq", _holes)


def _mha(**options) -> nn.Module:
    return nn.MultiheadAttention(16, 4, batch_first=True, **options)


def _self(self, x):
    return self.attention(x, x, x, need_weights=False)[0]


def _self_weights(self, x):
    return self.attention(x, x, x, average_attn_weights=False)


def _self_padded(self, x, holes):
    return self.attention(x, x, x, key_padding_mask=holes)


def _self_masked(self, x, mask):
    return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


def _self_causal(self, x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return self.attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]


def _sdpa(self, q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def _sdpa_causal(self, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention() -> list[Entry]:
    x, cross = floats("batch seq 16"), floats("batch source 16")
    heads = {"q": floats("batch 2 seq 8"), "k": floats("batch 2 source 8"), "v": floats("batch 2 source 8")}
    equal = {"q": floats("batch 2 seq 8"), "k": floats("batch 2 seq 8"), "v": floats("batch 2 seq 8")}
    three = Input("4*batch seq seq", _cubic)
    return [
        plain("attention self", lambda: model(_self, attention=_mha()), {"x": x}),
        plain("attention self, sequence first", lambda: model(_self, attention=nn.MultiheadAttention(16, 4)),
              {"x": floats("seq batch 16")}),
        plain("attention weights", lambda: model(_self_weights, attention=_mha()), {"x": x}),
        plain("attention cross", _mha, {"query": x, "key": cross, "value": cross}),
        plain("attention kdim vdim", lambda: _mha(kdim=6, vdim=10),
              {"query": x, "key": floats("batch source 6"), "value": floats("batch source 10")}),
        plain("attention key_padding_mask", lambda: model(_self_padded, attention=_mha()), {"x": x, "holes": HOLES}),
        plain("attention attn_mask 2-d", lambda: model(_self_masked, attention=_mha()), {"x": x, "mask": SELF_MASK}),
        plain("attention attn_mask 3-d", lambda: model(_self_masked, attention=_mha()), {"x": x, "mask": three}),
        plain("attention causal inside", lambda: model(_self_causal, attention=_mha()), {"x": x}),
        plain("attention bias_kv", lambda: model(_self, attention=_mha(add_bias_kv=True, add_zero_attn=True)),
              {"x": x}),
        plain("sdpa", lambda: model(_sdpa), heads),
        plain("sdpa causal", lambda: model(_sdpa_causal), equal),
    ]  # fmt: skip


def _layer(**options) -> nn.Module:
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)


def _encoder_causal(self, src):
    mask = nn.Transformer.generate_square_subsequent_mask(src.shape[1])
    return self.encoder(src, mask=mask, is_causal=True)


def _decoder_causal(self, tgt, memory):
    mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
    return self.decoder(tgt, memory, tgt_mask=mask, tgt_is_causal=True)


def _transformer_masked(self, src, tgt):
    mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
    return self.transformer(src, tgt, tgt_mask=mask)


def _encoder_padded(self, src, holes):
    # what stands at the holes depends on whether gradients are on: nested tensors leave zeros there
    return self.encoder(src, src_key_padding_mask=holes).masked_fill(holes.unsqueeze(-1), 0.0)


def _translator(self, src, tgt):
    positions = torch.arange(tgt.shape[1], device=tgt.device)
    mask = torch.triu(torch.full((tgt.shape[1], tgt.shape[1]), float("-inf")), 1)
    out = self.transformer(self.words(src), self.words(tgt) + self.places(positions), tgt_mask=mask)
    return self.head(out)


def transformers() -> list[Entry]:
    src, tgt, memory = floats("batch seq 16"), floats("batch target 16"), floats("batch source 16")
    encoder = lambda: nn.TransformerEncoder(_layer(), 2)  # noqa: E731
    decoder = lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2)  # noqa: E731
    whole = lambda: nn.Transformer(16, 4, 2, 2, 32, batch_first=True)  # noqa: E731
    both = {"src": memory, "tgt": tgt}
    words = {"src": ids("batch source"), "tgt": ids("batch target")}
    parts = lambda: {"words": nn.Embedding(50, 16), "places": nn.Embedding(64, 16), "head": nn.Linear(16, 50)}  # noqa: E731
    return [
        plain("encoder_layer", _layer, {"src": src}),
        plain("encoder_layer gelu norm_first", lambda: _layer(activation="gelu", norm_first=True), {"src": src}),
        plain("encoder", encoder, {"src": src}),
        plain("encoder, sequence first", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32), 2),
              {"src": floats("seq batch 16")}),
        plain("encoder padding", lambda: model(_encoder_padded, encoder=encoder()), {"src": src, "holes": HOLES}),
        plain("encoder causal", lambda: model(_encoder_causal, encoder=encoder()), {"src": src}),
        plain("encoder mask", encoder, {"src": src, "mask": SELF_MASK}),
        plain("decoder", decoder, {"tgt": tgt, "memory": memory}),
        plain("decoder causal", lambda: model(_decoder_causal, decoder=decoder()), {"tgt": tgt, "memory": memory}),
        plain("transformer", whole, both),
        plain("transformer tgt_mask", lambda: model(_transformer_masked, transformer=whole()), both),
        plain("translator", lambda: model(_translator, transformer=whole(), **parts()), words),
    ]  # fmt: skip


# ---- spectra, sorting, counting


def _stft(self, x):
    return torch.view_as_real(torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True))


def _spectrogram(self, x):
    return torch.stft(x, 16, 8, window=torch.hann_window(16), center=False, return_complex=True).abs()


def _istft(self, x):
    window = torch.hann_window(16)
    return torch.istft(torch.stft(x, 16, 4, window=window, return_complex=True), 16, 4, window=window)


def _masked_mean(self, x, holes):
    keep = (~holes).unsqueeze(-1)
    return (x * keep).sum(1) / keep.sum(1)


def _message(self, x, edges):
    return torch.zeros_like(x).index_add(0, edges[1], self.linear(x)[edges[0]])


def _graph(n: int, m: int):
    return torch.randn(n, 6), torch.randint(0, n, (2, m))


def others() -> list[Entry]:
    wave, x = {"x": floats("batch length")}, {"x": floats("batch seq 6")}
    functions = [
        ("cumsum", lambda self, x: x.cumsum(1)),
        ("sort", lambda self, x: x.sort(1).values),
        ("topk", lambda self, x: x.topk(2, dim=2)),
        ("argmax", lambda self, x: x.argmax(1)),
        ("mean and std", lambda self, x: torch.cat([x.mean(1), x.std(1, correction=0)], 1)),
        ("logsumexp", lambda self, x: x.logsumexp(1)),
        ("tril", lambda self, x: (x @ x.transpose(1, 2)).tril()),
        ("repeat_interleave", lambda self, x: x.repeat_interleave(2, dim=1)),
        ("one_hot", lambda self, x: F.one_hot(x.argmax(2), 6)),
        ("positions", lambda self, x: x + torch.arange(x.shape[1])[:, None] / x.shape[1]),
        ("size in a tensor", lambda self, x: x * torch.tensor(float(x.shape[1]))),
    ]
    return [
        plain("stft", lambda: model(_stft), wave, length=(40, 33, 57, 64)),
        plain("stft without centre", lambda: model(_spectrogram), wave, length=(40, 33, 57, 64)),
        plain("istft", lambda: model(_istft), wave, length=(40, 33, 57, 64)),
        plain("rfft", lambda: model(lambda self, x: torch.fft.rfft(x).abs()), wave),
        plain("unfold frames", lambda: model(lambda self, x: x.unfold(1, 4, 2)), wave),
        plain("masked mean", lambda: model(_masked_mean), {"x": floats("batch seq 6"), "holes": HOLES}),
        own("graph sums", lambda: model(_message, linear=nn.Linear(6, 6)), _graph,
            {"x": "n 6", "edges": "2 m"}),
        *(plain(name, lambda f=function: model(f), x) for name, function in functions),
    ]  # fmt: skip


def entries() -> list[Entry]:
    groups = (recurrent, attention, transformers, others)
    return under("nn", [entry for group in groups for entry in group()])
