# SPDX-License-Identifier: BSD-3-Clause
"""The shared library through ctypes: start and end, errors, symmetric arrays. The structures are those of npushmemx.h."""
import ctypes
import os
from pathlib import Path

import numpy as np

VERSION = (0, 2, 0)  # of the interface that this file is written for; an older library refuses it
SONAME = "libnpushmem.so.0"
UNIQUE_ID_BYTES = 128
WITH_UNIQUE_ID = 1


class Error(RuntimeError):
    """A failure of the library. `code` is a code of npushmem/plugin/abi.h, the text its report."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class _UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * UNIQUE_ID_BYTES)]


class _InitAttr(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("version_major", ctypes.c_int32), ("version_minor", ctypes.c_int32),
                ("version_patch", ctypes.c_int32), ("rank", ctypes.c_int32), ("nranks", ctypes.c_int32),
                ("uniqueid", _UniqueId), ("attribute", ctypes.c_void_p)]


def _load():
    named = os.environ.get("LIBNPUSHMEM")
    beside = [folder / SONAME for folder in Path(__file__).resolve().parents[2:6]]
    path = named or next((str(file) for file in beside if file.exists()), SONAME)
    try:
        loaded = ctypes.CDLL(path)
    except OSError as problem:
        raise ImportError(f"cannot load {path}: {problem}; install libnpushmem0 or set LIBNPUSHMEM to the file") from None
    loaded.npushmem_malloc.restype = ctypes.c_void_p
    loaded.npushmem_malloc.argtypes = [ctypes.c_size_t]
    loaded.npushmem_free.argtypes = [ctypes.c_void_p]
    loaded.npushmem_free.restype = loaded.npushmem_barrier_all.restype = loaded.npushmem_finalize.restype = None
    return loaded


library = _load()
_generation = 0  # 0: not started; each start has its own
_starts = 0
_at_finalize = []  # functions, in the order of the collective calls that registered them


def check(code):
    """Raises Error with the library's report if `code` is not 0."""
    if code == 0:
        return
    text = ctypes.c_char_p()
    library.npushmemx_last_error(ctypes.byref(text))
    raise Error(code, (text.value or b"").decode(errors="replace") or f"npushmem failed with code {code}")


def generation():
    """A number of the current start; raises RuntimeError if there is none."""
    if _generation == 0:
        raise RuntimeError("npushmem is not initialised, or is finalized; call npushmem.init() first")
    return _generation


def at_finalize(function):
    _at_finalize.append(function)


def get_unique_id():
    """The bytes of a new id, with which the ranks of a job without a launcher find each other. They contain a secret. This
    process must live until all have joined. Call it before init."""
    unique_id = _UniqueId()
    check(library.npushmemx_get_uniqueid(ctypes.byref(unique_id)))
    return bytes(unique_id.bytes)


def init(unique_id=None, rank=None, n_ranks=None):
    """Collective. Starts this PE: without arguments from the launcher's environment, else as `rank` of the `n_ranks` processes
    that pass the bytes of one get_unique_id()."""
    global _generation, _starts
    if _generation:
        raise RuntimeError("npushmem is initialised already")
    attr = _InitAttr(ctypes.sizeof(_InitAttr), *VERSION, -1, -1)
    if unique_id is not None:
        if rank is None or n_ranks is None:
            raise TypeError("init with a unique id needs rank and n_ranks")
        if len(unique_id) != UNIQUE_ID_BYTES:
            raise ValueError(f"a unique id has {UNIQUE_ID_BYTES} bytes, not {len(unique_id)}")
        identity = _UniqueId.from_buffer_copy(unique_id)
        check(library.npushmemx_set_attr_uniqueid_args(rank, n_ranks, ctypes.byref(identity), ctypes.byref(attr)))
    check(library.npushmemx_init_attr(WITH_UNIQUE_ID if unique_id is not None else 0, ctypes.byref(attr)))
    _starts += 1
    _generation = _starts


def finalize():
    """Collective. Destroys the open Buffers and ends the library. Symmetric arrays must not be used afterwards."""
    global _generation
    generation()
    while _at_finalize:
        _at_finalize.pop(0)()
    _generation = 0
    library.npushmem_finalize()


def my_pe():
    """The number of this PE."""
    generation()
    return library.npushmem_my_pe()


def n_pes():
    """The number of PEs of the job."""
    generation()
    return library.npushmem_n_pes()


def barrier_all():
    """Collective. Completes all operations of this PE and waits for all PEs."""
    generation()
    library.npushmem_barrier_all()


def empty(shape, dtype=np.float32):
    """Collective. A new array in symmetric memory, with arbitrary contents; all PEs pass the same shape and type. It must not
    be used after free() or finalize()."""
    generation()
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    size = count * dtype.itemsize
    address = library.npushmem_malloc(max(size, 1))
    if not address:
        check(library.npushmemx_last_error(None))
        raise MemoryError(f"no symmetric memory for {size} bytes")
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype, count=count).reshape(shape)


def free(array):
    """Collective. Frees an array of empty()."""
    generation()
    library.npushmem_free(array.ctypes.data)
