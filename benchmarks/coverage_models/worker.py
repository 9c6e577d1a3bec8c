"""A worker process: takes entries one by one, exports and judges them, and says where it stands."""

from __future__ import annotations

import logging
import os
import resource
import tempfile
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def serve(pipe: Connection, gigabytes: int) -> None:
    """Answer `(source, entry, exporter)` with a record until None comes.

    In between the parent hears `("stage", name)`, so that it knows where a crash or a time-out struck.
    """
    _be_quiet()
    resource.setrlimit(resource.RLIMIT_DATA, (gigabytes << 30, gigabytes << 30))
    import torch

    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    pipe.send(("ready", None))
    while (task := pipe.recv()) is not None:
        pipe.send(("done", _record(pipe, *task)))


def _be_quiet() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _record(pipe: Connection, source: str, name: str, exporter: str) -> Record:
    import torch

    from coverage_models import load
    from coverage_models.exporters import EXPORTERS, RefusedError
    from coverage_models.judge import cases_of, judge
    from coverage_models.texts import error_line, one_line

    pipe.send(("stage", "preparing"))
    try:
        entry = load(source)[name]
        cases = cases_of(entry)
        model = entry.built()
    except Exception as error:
        return {"outcome": "defect", "cause": error_line(error)}
    if exporter == "eager":
        return {"outcome": "verified"}
    pipe.send(("stage", "exporting"))
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            told = EXPORTERS[exporter](model, entry, path)
        except RefusedError as refusal:
            return {"outcome": "refused", "seconds": _since(start), "cause": one_line(refusal), **refusal.told}
        except Exception as error:
            return {"outcome": "refused", "seconds": _since(start), "cause": error_line(error)}
        finally:
            torch.compiler.reset()
        seconds = _since(start)
        pipe.send(("stage", "judging"))
        fault = judge(path, entry, cases)
    told = {key: value for key, value in told.items() if value}
    if fault:
        return {"outcome": "wrong", "seconds": seconds, "cause": fault, **told}
    return {"outcome": "verified", "seconds": seconds, **told}


def _since(start: float) -> float:
    return round(time.process_time() - start, 2)
