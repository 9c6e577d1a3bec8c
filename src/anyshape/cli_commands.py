"""What the command line needs beside the library: targets, inputs, streams and endings."""

from __future__ import annotations
