"""One thread for every test: workers share the cores, and timings do not matter here."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
