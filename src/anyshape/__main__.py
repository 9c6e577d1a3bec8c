"""`anyshape` and `python -m anyshape`: the command line, and one line for who stops it while it is still being read."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from anyshape.cli import main as run  # reading it takes half a second, in which Ctrl-C may come
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped\n")
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
