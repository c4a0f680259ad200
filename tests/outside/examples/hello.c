/* SPDX-License-Identifier: BSD-3-Clause */
/* Each PE writes its number into the memory of the next PE.
 *
 *     $ npushmem-run -n 3 ./hello
 *     PE 0 received 2
 *     PE 1 received 0
 *     PE 2 received 1
 *
 * The lines may appear in any order. */
#include <npushmem.h>
#include <stdio.h>

int main(void) {
    npushmem_init();
    int me = npushmem_my_pe();
    long* slot = npushmem_malloc(sizeof *slot);             /* the same object on every PE */
    npushmem_long_p(slot, me, (me + 1) % npushmem_n_pes()); /* write to the next PE */
    npushmem_barrier_all();
    printf("PE %d received %ld\n", me, *slot);
    npushmem_free(slot);
    npushmem_finalize();
}
