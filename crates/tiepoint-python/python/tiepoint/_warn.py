"""Warnings that point to the line that called this package."""

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(*texts: str) -> None:
    """Warn, with the line outside of this package from which the call came."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, stacklevel=level)
