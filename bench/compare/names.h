/* SPDX-License-Identifier: BSD-3-Clause */
/* The same kernels for two libraries: SHMEM(putmem) is npushmem_putmem or, with -DPEER, shmem_putmem. */
#ifdef PEER
#include <shmem.h>
#define SHMEM(name) shmem_##name
#define SHMEM_CMP(name) SHMEM_CMP_##name
#else
#include <npushmem.h>
#define SHMEM(name) npushmem_##name
#define SHMEM_CMP(name) NPUSHMEM_CMP_##name
#endif
