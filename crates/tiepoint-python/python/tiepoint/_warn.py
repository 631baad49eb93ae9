"""Warnings, told of the line that called this package."""

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(*texts: str) -> None:
    """Warn, as of the caller's line that led here."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, stacklevel=level)
