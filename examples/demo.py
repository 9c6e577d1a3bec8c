"""Three inputs of different kinds, every size dynamic: export, the verdict, runs at two other sizes, a page to look at."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

import anyshape


class TextAndImage(nn.Module):
    """Token ids with a mask attend to the patches of an image."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        self.positions = nn.Embedding(128, width)
        self.patches = nn.Conv2d(3, width, kernel_size=8, stride=8)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, 10)

    def forward(self, tokens: Tensor, mask: Tensor, image: Tensor) -> dict[str, Tensor]:
        text = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        patches = self.patches(image)
        flat = patches.flatten(2).transpose(1, 2)
        attention = torch.softmax(self.query(text) @ self.key(flat).transpose(1, 2) / 32**0.5, dim=-1)
        joined = text + attention @ flat
        kept = joined.masked_fill(~mask.unsqueeze(-1), 0.0)
        pooled = kept.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return {"logits": self.head(pooled), "attention": attention, "patches": patches}


def main() -> None:
    torch.manual_seed(0)
    model = TextAndImage().eval()
    example = (torch.randint(0, 1000, (2, 7)), torch.ones(2, 7, dtype=torch.bool), torch.randn(2, 3, 48, 64))
    path = Path("demo.onnx")
    result = anyshape.export(
        model,
        example,
        path,
        dims={"tokens": "batch seq", "mask": "batch seq", "image": "batch 3 height width"},
        sizes={"height": "8..", "width": "8.."},
    )
    print(result)

    loaded = anyshape.load(path)
    for batch, seq, height, width in ((1, 128, 8, 200), (5, 1, 100, 61)):
        tokens = torch.randint(0, 1000, (batch, seq))
        mask = torch.rand(batch, seq) < 0.7
        image = torch.randn(batch, 3, height, width)
        with torch.no_grad():
            difference = (loaded(tokens, mask, image)["logits"] - model(tokens, mask, image)["logits"]).abs().max()
        print(f"batch {batch}, seq {seq}, image {height} x {width}: largest difference from PyTorch {difference:.1e}")

    page = result.report("demo.html")
    print(f"wrote {page}: open it in a browser")


if __name__ == "__main__":
    main()
