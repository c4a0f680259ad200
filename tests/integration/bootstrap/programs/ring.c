/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE of a job under a launcher that this project does not own: puts its number into the next PE's memory, checks, and
 * says so in one line. Arguments make one rank misbehave:
 *     --die <rank>      ends with status 3 before it starts npushmem
 *     --absent <rank>   ends with status 0 before it starts npushmem
 *     --newer <rank>    was compiled with a newer npushmem than it runs with
 *     --bad <rank>      has a malformed variable
 *     --twice           finalizes and starts again */
#include <npushmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rank as the launcher states it, for misbehaviour before there is a PE number. */
static int launched_rank(void) {
    static const char* const names[] = {"NPUSHMEM_PE", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "PMI_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i]) != NULL) return atoi(getenv(names[i]));
    return 0;
}

static int ring(void) {
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    long* slot = npushmem_malloc(sizeof *slot);
    if (slot == NULL) return 4;
    *slot = -1;
    npushmem_barrier_all();
    npushmem_long_p(slot, me, (me + 1) % n);
    npushmem_barrier_all();
    const int good = *slot == (me + n - 1) % n;
    printf("ring: PE %d of %d %s\n", me, n, good ? "good" : "BAD");
    npushmem_free(slot);
    npushmem_finalize();
    return good ? 0 : 5;
}

static int start(int newer) {
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    attr.version_minor += newer;
    return npushmemx_init_attr(0, &attr) == 0 ? 0 : 6;
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    const int chosen = argc > 2 && atoi(argv[2]) == launched_rank();
    const int times = strcmp(what, "--twice") == 0 ? 2 : 1;
    if (chosen && strcmp(what, "--die") == 0) return 3;
    if (chosen && strcmp(what, "--absent") == 0) return 0;
    if (chosen && strcmp(what, "--bad") == 0) setenv("NPUSHMEM_BOOTSTRAP_UID_SOCK_FAMILY", "AF_APPLETALK", 1);
    for (int i = 0; i < times; ++i) {
        int failed = start(chosen && strcmp(what, "--newer") == 0);
        if (failed == 0) failed = ring();
        if (failed != 0) return failed;
    }
    return 0;
}
