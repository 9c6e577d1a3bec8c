from __future__ import annotations

import torch
from torch import Tensor, nn


class HardView(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(2, 8, 4) + 1


class Loop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(list({step: x[:, step] * step for step in range(x.shape[1])}.values()))


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        if x.shape[1] > 6:
            return x, x.mean(1)
        return x


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(torch.arange(x.shape[1]))


class Heads(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, 4, length // 4, width)


class Loud(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        while x.abs().max() > 1:
            x = x.unsqueeze(0) / 2
        return x


class Noisy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Translated(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        doubled = nn.functional.silu(x)
        return torch.relu(doubled.mT)


class Eigenvalues(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvalsh(x @ x.mT)


class Custom(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.onnx.ops.symbolic("my.domain::Twice", (x,), dtype=x.dtype, shape=x.shape, version=1)


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Wide(nn.Module):
    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        if x.shape[0] > x.shape[1]:
            return x, x * 2
        return x


@torch.library.custom_op("anyshape_messages::in_numpy", mutates_args=())
def in_numpy(x: Tensor, times: int, factor: float = 2.0) -> Tensor:
    return torch.from_numpy(x.numpy() * x.numpy().dtype.type(factor) ** times)


class InNumpy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 1 + in_numpy(x, 3)


class Copies(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x] * int(x.abs().max() + 1))


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 5, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(1, 3, 4)
        return self.rnn(x, state)[0]


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(20, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.flatten(1))


class Asserted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[1] == 5
        return x * 2


class Static(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Parameter(torch.ones(3, 5, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bsd,bsd->bs", x, self.other)


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(1) / 5


class Rows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([x[:, step].tanh() for step in range(5)], 1)


class Folded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(0, 1).reshape(-1, 5, 4).softmax(1)


class Mixed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(0)


class Scaled(nn.Module):
    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return x * scale


class Masked(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.einsum("bsd,bsd->bs", x, x), x.int() & 3


class Projected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(x)


class Cube(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.fft.rfft(x) ** 3)
