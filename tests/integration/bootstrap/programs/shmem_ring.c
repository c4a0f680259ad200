/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of another OpenSHMEM library that uses npushmem beside it. */
#include <npushmemx.h>
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    static long theirs = -1;
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    if (npushmemx_init_attr(0, &attr) != 0) return 6;
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    long* slot = npushmem_malloc(sizeof *slot);
    if (me != shmem_my_pe() || n != shmem_n_pes() || slot == NULL) return 4;
    *slot = -1;
    npushmem_barrier_all();
    npushmem_long_p(slot, me, (me + 1) % n);
    shmem_long_p(&theirs, me, (me + 1) % n);
    npushmem_barrier_all();
    shmem_barrier_all();
    const int good = *slot == (me + n - 1) % n && theirs == *slot;
    printf("ring: PE %d of %d %s\n", me, n, good ? "good" : "BAD");
    npushmem_free(slot);
    npushmem_finalize();
    shmem_finalize();
    return good ? 0 : 5;
}
