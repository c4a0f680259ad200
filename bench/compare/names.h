/* SPDX-License-Identifier: BSD-3-Clause */
/* The same kernels for several libraries: SHMEM(putmem) is npushmem_putmem, with -DPEER shmem_putmem, and with
 * -DUSE_MPI a function over MPI_Put. */
#if defined(USE_MPI)
#include "one_sided_mpi.h"
#elif defined(PEER)
#include <shmem.h>
#define SHMEM(name) shmem_##name
#define SHMEM_CMP(name) SHMEM_CMP_##name
#else
#include <npushmem.h>
#define SHMEM(name) npushmem_##name
#define SHMEM_CMP(name) NPUSHMEM_CMP_##name
#endif
