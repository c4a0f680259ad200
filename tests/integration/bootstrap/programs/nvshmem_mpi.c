/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of NVSHMEM that reduces, started from an MPI communicator. */
#define WITH_MPI
#include "../../../outside/nvshmem/reduce.c"
