"""Make a Jupyter kernel, or an IPython in a terminal, ready for the course."""

from __future__ import annotations

from helpers.ranks.cells import in_kernel, ipython


def greet_kernel() -> None:
    """Start the rank server in the background, and register magics, advice and displays."""
    if in_kernel():  # start it first, because the first launch waits for the rank server
        from helpers.ranks.launcher import start_in_background

        start_in_background()
    shell = ipython()
    if shell is not None:
        from helpers.course import after_magic, unknown_name
        from helpers.ranks import magics
        from helpers.views.show import register_displays
        from helpers.vocabulary import homes

        magics.register(shell)
        after_magic.register(shell)
        unknown_name.register(shell, homes())
        register_displays()
