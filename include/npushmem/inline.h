/* SPDX-License-Identifier: BSD-3-Clause */
/* Optional: p, g, put and get of one word, put_signal of one element, atomics, signals, fence and quiet without a call,
 * where the PE is mapped and the object is in the heap, aligned to its size. Include it after or instead of
 * <npushmem.h>; the same program then compiles to the address calculation and the instruction. For the names of
 * OpenSHMEM compile with -DNPUSHMEM_INLINE, which <shmem.h> looks for.
 *
 * Everything else calls the library: other PEs, symmetric variables, registered buffers, worlds other than the default
 * one, functions with a context, wrong arguments, the time outside init and finalize, NPUSHMEM_CHECK. Decisions are
 * made at run time, so that one binary runs over every transport. put and get are expanded for a count of 1, and putmem
 * and getmem for a constant of 1, 2, 4, 8 or 16 bytes, which only an optimising compiler recognises.
 *
 * Results, errors and ordering are those of the functions; the compiler moves no access of memory across them, as
 * across a call. A pointer to a function is the library's, unless the compiler sees through it. Tools that replace
 * functions, as with pshmem_<name>, do not see the expanded calls. An expanded store does not wake a PE that sleeps in
 * wait_until (npushmem/functions/waits.h).
 *
 * Compilers: GCC and clang; with others the header only includes <npushmem.h>. The library must export
 * npushmemx_inline_v1 (npushmem/inline/map.h), as every version after 0.2.0 does. */
#ifndef NPUSHMEM_INLINE_H
#define NPUSHMEM_INLINE_H

#include "npushmem.h"

#if defined(__GNUC__)
#define NPUSHMEM_INLINE_NAME(NAME) npushmem_##NAME
#include "npushmem/inline/functions.h"
#undef NPUSHMEM_INLINE_NAME
#endif

#endif
