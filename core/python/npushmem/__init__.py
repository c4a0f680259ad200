# SPDX-License-Identifier: BSD-3-Clause
"""npushmem: symmetric memory and expert parallelism on numpy arrays.

    import npushmem
    npushmem.init()                              # in a process that npushmem-run has started
    buffer = npushmem.Buffer(max_tokens=128)     # dispatch and combine: see Buffer
    npushmem.finalize()

The package loads libnpushmem.so.0: the file that LIBNPUSHMEM names, else that of the installation which contains the
package, else that of the loader.

Every function raises Error when the library reports a failure, and ValueError or TypeError before it calls the library when
an argument has a wrong shape, type or layout. If only one PE raises from a collective call, the others wait for it until
NPUSHMEM_TIMEOUT or the end of that process. One thread at a time may use the package.
"""
from ._library import Error, barrier_all, empty, finalize, free, get_unique_id, init, my_pe, n_pes
from .buffer import Buffer, Handle

__all__ = ["Buffer", "Error", "Handle", "barrier_all", "empty", "finalize", "free", "get_unique_id", "init", "my_pe", "n_pes"]
