/* SPDX-License-Identifier: BSD-3-Clause */
/* Which method runs an alltoall: push has one barrier, pull two. Started with NPUSHMEM_STATS=1, which counts them, and
 * a tuning file that selects pull from 8192 bytes on. */
#include <stdint.h>
#include <stdio.h>

#include "npushmem.h"
#include "npushmemx.h"

static int differences;

static void expect_barriers(const char* what, uint64_t expected, char* dest, const char* source, size_t bytes) {
    npushmemx_statistics_t before, after;
    npushmemx_team_get_statistics(NPUSHMEM_TEAM_WORLD, &before);
    npushmem_alltoallmem(NPUSHMEM_TEAM_WORLD, dest, source, bytes);
    npushmemx_team_get_statistics(NPUSHMEM_TEAM_WORLD, &after);
    if (after.barriers - before.barriers == expected) return;
    ++differences;
    fprintf(stderr, "BAD %s: %llu barriers, not %llu\n", what, (unsigned long long)(after.barriers - before.barriers),
            (unsigned long long)expected);
}

int main(void) {
    const size_t bytes = 16384;
    npushmem_init();
    char* dest = npushmem_malloc(bytes * (size_t)npushmem_n_pes());
    char* source = npushmem_malloc(bytes * (size_t)npushmem_n_pes());
    expect_barriers("below the rule's sizes", 1, dest, source, 8191);
    expect_barriers("by the rule", 2, dest, source, 8192);
    npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "npushmem:push");
    expect_barriers("by the program's method", 1, dest, source, 8192);
    npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "npushmem:scatter");
    expect_barriers("by a method of other collectives", 1, dest, source, 8192);
    npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "npushmem");
    expect_barriers("by the rule, which names no other library", 2, dest, source, 8192);
    if (differences == 0) printf("method_rules: PE %d of %d good\n", npushmem_my_pe(), npushmem_n_pes());
    npushmem_finalize();
    return differences != 0;
}
