/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of mapped PEs, for code that the compiler puts into the program. npushmem/inline.h has the functions.
 *
 * The library's own fast path reads the same structure. Its binary form is part of the interface: no member moves or
 * changes its meaning. A library that can no longer fill it exports it with zeros, so that compiled programs call the
 * functions instead. Another form gets another name. The test abi guards it.
 *
 * Threads: the library writes it at the start and at the end of the default world only, while no call on that world is
 * in progress. all_mapped also changes when other worlds start and end: read it atomically. */
#ifndef NPUSHMEM_INLINE_MAP_H
#define NPUSHMEM_INLINE_MAP_H

#include <stdint.h>

/* All members are 0 outside init and finalize, and in a child of fork. mapped_pes is also 0 where the library must see
 * each call on an object: with NPUSHMEM_CHECK or NPUSHMEM_NPU_CHECK.
 *
 * Byte o of the heap, at heap + o here, is on PE p at peers + (p - first_pe) * stride + o, if o < heap_bytes and
 * p - first_pe, as a uint32_t, < mapped_pes. Symmetric variables and registered buffers are not in it. */
typedef struct npushmemx_inline_map_s {
    uintptr_t heap;      /* first byte of this PE's heap, the address that programs use */
    uint64_t heap_bytes; /* of each PE, a multiple of the page */
    void* peers;         /* the heap of PE first_pe, as this process maps it */
    uint64_t stride;     /* bytes between the heaps of neighbouring mapped PEs */
    uint32_t first_pe;   /* mapped PEs are first_pe, first_pe + 1, ... */
    uint32_t mapped_pes; /* their number; 0: call the library */
    uint32_t all_mapped; /* 1: all PEs of all worlds are mapped, and a fence of the CPU is a quiet */
    uint32_t reserved;
} npushmemx_inline_map_t;

#ifdef __cplusplus
extern "C" {
#endif

/* A pointer, because a linker may copy a variable of a library into an executable: a copied pointer stays valid. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const npushmemx_inline_map_t* const npushmemx_inline_v1;

#ifdef __cplusplus
}
#endif
#endif
