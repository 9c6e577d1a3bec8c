"""Two rounds of messages and a sum per graph: nodes, edges and graphs vary, and there may be no edge."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "nodes 4", "edge_index": "2 edges", "edge_attr": "edges 3", "owner": "nodes", "context": "graphs 2"}
sizes = {"nodes": (6, [1, 15]), "edges": (10, [0, 1, 32]), "graphs": (2, [1, 4])}
exports = True


class Round(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message, self.gate, self.update = nn.Linear(11, 4), nn.Linear(11, 1), nn.Linear(8, 4)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        source, target = edge_index[0], edge_index[1]
        ends = torch.cat([x[source], x[target], edge_attr], dim=1)
        weight = self.gate(ends).sigmoid()
        total = torch.zeros_like(x).index_add(0, target, weight * self.message(ends))
        norm = torch.zeros(x.shape[0], 1).scatter_add(0, target.unsqueeze(1), weight)
        return x + self.update(torch.cat([x, total / (norm + 1e-3)], dim=1)).tanh()


class GraphNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rounds = nn.ModuleList(Round() for _ in range(2))
        self.readout = nn.Linear(6, 3)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, owner: Tensor, context: Tensor
    ) -> tuple[Tensor, Tensor]:
        for one in self.rounds:
            x = one(x, edge_index, edge_attr)
        pooled = x.new_zeros(context.shape[0], 4).index_add(0, owner, x)
        return x, self.readout(torch.cat([pooled, context], dim=1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return GraphNetwork().eval()


def inputs(nodes: int, edges: int, graphs: int) -> tuple[object, ...]:
    links, owner = torch.randint(0, nodes, (2, edges)), torch.randint(0, graphs, (nodes,))
    return torch.randn(nodes, 4), links, torch.randn(edges, 3), owner, torch.randn(graphs, 2)
