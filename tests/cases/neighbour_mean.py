"""The mean over a node's neighbours: several edges add into the same row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"nodes": "n 3", "links": "2 edges", "lengths": "edges 2"}
sizes = {"n": (5, [2, 12]), "edges": (9, [1, 30])}
exports = True


class NeighbourMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(5, 4)
        self.own = nn.Linear(3, 4)

    def forward(self, nodes: Tensor, links: Tensor, lengths: Tensor) -> Tensor:
        source, target = links
        messages = self.message(torch.cat([nodes[source], lengths], dim=1))
        received = torch.zeros(nodes.shape[0], 4).index_add(0, target, messages)
        degree = torch.zeros(nodes.shape[0]).scatter_add(0, target, torch.ones(target.shape[0]))
        return self.own(nodes) + received / degree.clamp(min=1.0).unsqueeze(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return NeighbourMean().eval()


def inputs(n: int, edges: int) -> tuple[object, ...]:
    return torch.randn(n, 3), torch.randint(0, n, (2, edges)), torch.rand(edges, 2)
