"""Self-loops are added to a graph of five nodes."""

from __future__ import annotations

import torch
from torch import nn

dims = {"nodes": "nodes _", "adjacency": "nodes nodes"}
example = {"nodes": 5}
others = [{"nodes": 2}, {"nodes": 8}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, nodes, adjacency):
        adjacency = adjacency + torch.eye(5)  # error: [pinned-dim] nodes
        return self.linear(adjacency @ nodes)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(nodes):
    return (torch.randn(nodes, 3), torch.rand(nodes, nodes))


class Right(Net):
    def forward(self, nodes, adjacency):
        adjacency = adjacency + torch.eye(nodes.shape[0])
        return self.linear(adjacency @ nodes)


def right():
    torch.manual_seed(0)
    return Right().eval()
