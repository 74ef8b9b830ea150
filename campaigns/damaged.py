"""What Python's zip reader raises for damaged archives, which its documentation does not list."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib

DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    IndexError,
    OverflowError,
)
"""Found by changing bytes of good archives: names that are no UTF-8, offsets before the file, fields cut short."""
