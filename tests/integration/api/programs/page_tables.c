/* SPDX-License-Identifier: BSD-3-Clause */
/* One PE prints the kilobytes of its page tables after calls that touch the memory of a few PEs only. */
#include <stdio.h>

#include "npushmem.h"

static long page_tables(void) {
    char line[256];
    long kilobytes = -1;
    FILE* status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmPTE: %ld", &kilobytes) == 1) break;
    if (status != NULL) fclose(status);
    return kilobytes;
}

int main(void) {
    npushmem_init();
    const int me = npushmem_my_pe(), n = npushmem_n_pes();
    long* const source = npushmem_malloc(sizeof *source);
    long* const dest = npushmem_calloc((size_t)n, sizeof *dest);
    *source = me;
    npushmem_barrier_all();
    npushmem_long_broadcast(NPUSHMEM_TEAM_WORLD, dest, source, 1, n - 1);
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, dest, source, 1);
    npushmem_long_fcollect(NPUSHMEM_TEAM_WORLD, dest, source, 1);
    npushmem_team_t odd = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd);
    npushmem_team_destroy(odd);
    npushmem_free(dest);
    npushmem_free(source);
    if (me == n / 2 + 1) printf("%ld\n", page_tables());
    npushmem_finalize();
    return 0;
}
