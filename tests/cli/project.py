"""A user's project for the tests of the command line, and how they run it."""

from __future__ import annotations

import subprocess
import sys

from click.testing import CliRunner, Result

from anyshape.cli import program

TOKENS = "tokens: int64[batch, seq] < 50"
MODEL = '''
"""A model and what belongs to it."""
import ctypes, os
import torch
from torch import nn

print("the file prints")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 4)
        self.linear = nn.Linear(4, 3)

    def forward(self, tokens):
        print("the model prints")
        os.write(1, b"C code prints\\n")
        ctypes.CDLL(None).puts(b"C code prints late")
        return self.linear(self.embedding(tokens))

    def encode(self, tokens):
        return self.embedding(tokens)

    @classmethod
    def small(cls):
        return cls()

class Pinned(nn.Module):
    def forward(self, x):
        return x.reshape(4, 6) + 1

class Needs(nn.Module):
    def __init__(self, width):
        super().__init__()

class Strided(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Conv2d(1, 1, 9, stride=2)

    def forward(self, image):
        return self.layers(image)

class Wide(nn.Linear):
    def __init__(self, width, *, features):
        super().__init__(width, features)

def wide(width=4, features=2):
    return Wide(width, features=features)

def build():
    return Net()

def number():
    return 3

def fails():
    return undefined_name

def double(x, states):
    return x * 2 + states[0] - states[1]["b"]

def joined(first, *rest):
    return torch.cat([first, *rest])

instance = Net()
'''


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, [str(one) for one in arguments])


def process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)
