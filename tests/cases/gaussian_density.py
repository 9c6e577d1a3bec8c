"""A Gaussian's density by Cholesky's factor, with the inverse, a solution and the determinant beside."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 3"}
sizes = {"batch": (2, [1, 4]), "n": (6, [4, 5, 11])}
exports = True


class Density(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        centred = x - x.mean(1, keepdim=True)
        covariance = centred.transpose(1, 2) @ centred / x.shape[1] + 0.3 * torch.eye(3)
        factor = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(factor, centred.transpose(1, 2), upper=False)
        density = -0.5 * white.square().sum(1) - factor.diagonal(dim1=1, dim2=2).log().sum(1, keepdim=True)
        return (
            density,
            torch.linalg.inv(covariance),
            torch.linalg.solve(covariance, x[:, 0]),
            torch.slogdet(covariance)[1],
        )


def model() -> nn.Module:
    torch.manual_seed(0)
    return Density().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 3),)
