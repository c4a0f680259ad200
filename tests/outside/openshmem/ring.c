/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of OpenSHMEM that knows nothing of npushmem: passes a number around and adds it up. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), npes = shmem_n_pes();
    long* numbers = (long*)shmem_calloc(2, sizeof(long));
    shmem_p(numbers, (long)me + 1, (me + 1) % npes);
    shmem_barrier_all();
    shmem_sum_reduce(SHMEM_TEAM_WORLD, numbers + 1, numbers, 1);
    if (me == 0 && numbers[0] == npes && numbers[1] == (long)npes * (npes + 1) / 2)
        printf("OpenSHMEM ring of %d PEs: good\n", npes);
    shmem_finalize();
    return 0;
}
