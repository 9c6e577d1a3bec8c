"""Sums for as many nodes as the example has, in the second layer of a graph network."""

from __future__ import annotations

import torch
from torch import nn

DIMS = {"x": "nodes 4", "edges": "2 edges"}
EXAMPLE = {"nodes": 6, "edges": 11}
OTHER = {"nodes": 9, "edges": 15}
PINNED = ["nodes"]
RULE = "pinned-dim"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x, edges):
        return torch.relu(self.mix(x + self.heard(x, edges)))

    def heard(self, x, edges):
        return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])


class Last(Layer):
    def heard(self, x, edges):
        sums = torch.zeros(6, 4)  # planted
        return sums.index_add(0, edges[1], x[edges[0]])


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer(), Last()])

    def forward(self, x, edges):
        for layer in self.layers:
            x = layer(x, edges)
        return x


def model() -> nn.Module:
    return Graph()


def inputs(nodes, edges):
    return (torch.randn(nodes, 4), torch.randint(0, nodes, (2, edges)))
