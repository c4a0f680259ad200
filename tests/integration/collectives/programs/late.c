/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that does not take part: a collective of another library ends by NPUSHMEM_TIMEOUT, the team's next one fails at
 * once, other teams go on, and npushmem ends. */
#include <npushmemx.h>
#include <stdio.h>

static long dest;
static long source = 1;
static long finished;

int main(void) {
    const char* message = NULL;
    npushmem_team_t others;
    npushmem_init();
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 1, 1, n - 1, NULL, 0, &others);
    int good = npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, &dest, &source, 1) == 0 && dest == n;
    if (me == 0) {
        while (!npushmem_long_test(&finished, NPUSHMEM_CMP_EQ, n - 1))
            continue; /* a wait would end by the time-out, too */
    } else {
        const int late = npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, &dest, &source, 1);
        (void)npushmemx_last_error(&message);
        printf("PE %d: code %d: %s\n", me, late, message);
        const int after = npushmem_long_max_reduce(NPUSHMEM_TEAM_WORLD, &dest, &source, 1);
        good = good && late == -402 && after == -402;
        good = good && npushmem_long_sum_reduce(others, &dest, &source, 1) == 0 && dest == n - 1;
        npushmem_long_atomic_add(&finished, 1, 0);
    }
    npushmemx_clear_error();
    printf("late: PE %d of %d %s\n", me, n, good ? "good" : "BAD");
    npushmem_finalize();
    return good ? 0 : 1;
}
