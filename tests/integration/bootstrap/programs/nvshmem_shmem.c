/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of NVSHMEM that reduces, started inside a program of another OpenSHMEM library. */
#define WITH_SHMEM
#include "../../../outside/nvshmem/reduce.c"
