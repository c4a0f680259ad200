/* SPDX-License-Identifier: BSD-3-Clause */
/* Each PE puts its number into the next one's memory and checks what it got. */
#include <npushmemx.h>
#include <stdio.h>

int main(void) {
    int provided = 0;
    if (npushmem_init_thread(NPUSHMEM_THREAD_SINGLE, &provided) != 0) return 1;
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    long* slot = npushmem_malloc(sizeof *slot);
    if (slot == NULL) return 2;
    *slot = -1;
    npushmem_barrier_all();
    npushmem_long_p(slot, me, (me + 1) % n);
    npushmem_barrier_all();
    const int good = *slot == (me + n - 1) % n;
    if (!good) printf("PE %d: found %ld\n", me, *slot);
    if (me == 0 && good) printf("ring of %d PEs: good\n%s", n, npushmemx_describe_map());
    npushmem_free(slot);
    npushmem_finalize();
    return good ? 0 : 3;
}
