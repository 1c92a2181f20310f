"""Where polycast is. It serves what is started by `polycast run`, or with this in LD_PRELOAD:

    >>> import polycast
    >>> polycast.preload
    '/home/me/venv/lib/polycast/libpolycast-mpi.so'

Behind what LD_PRELOAD has already, if anything. Programs need not import this.
"""

from pathlib import Path as _Path

__all__ = ["library_directory", "preload", "tool"]


def _installed_in():
    """The folder that bin/ and lib/ were installed in: that of the environment, above the folder of its packages."""
    for folder in _Path(__file__).absolute().parents:
        if (folder / "lib/polycast/libpolycast-mpi.so").is_file():
            return folder
    raise ImportError(
        f"polycast: expected lib/polycast/libpolycast-mpi.so in a folder above {__file__}, found none; "
        "install it into an environment (python3 -m venv), for `pip install --target` leaves libraries out"
    )


_prefix = _installed_in()

library_directory = str(_prefix / "lib/polycast")
"""The folder of the library and its doors."""

preload = str(_prefix / "lib/polycast/libpolycast-mpi.so")
"""What LD_PRELOAD is to name for programs that polycast serves, whichever MPI they use."""

tool = str(_prefix / "bin/polycast")
"""The command `polycast`."""
