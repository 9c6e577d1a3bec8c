"""A dataclass as the argument: torch's pytrees do not know it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

dims = {"trip.route": "batch stops 2", "trip.weekday": "batch"}
sizes = {"batch": (3, [1, 6]), "stops": (5, [1, 2, 9])}
exports = True


@dataclass
class Trip:
    route: Tensor
    weekday: Tensor


class TravelTime(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.days = nn.Embedding(7, 3)
        self.legs = nn.Linear(2, 3)

    def forward(self, trip: Trip) -> Tensor:
        legs = self.legs(trip.route).relu().sum(dim=1)
        return (legs * self.days(trip.weekday)).sum(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return TravelTime().eval()


def inputs(batch: int, stops: int) -> tuple[object, ...]:
    return (Trip(route=torch.randn(batch, stops, 2), weekday=torch.randint(0, 7, (batch,))),)
