/* SPDX-License-Identifier: BSD-3-Clause */
/* A token travels around a ring of PEs, twice. A PE waits until the token is in its memory, adds 1, and writes it into
 * the memory of the next PE. There is no barrier: the value is the synchronisation.
 *
 *     $ npushmem-run -n 3 ./ring
 *     lap 1 of the ring: the token is 3
 *     lap 2 of the ring: the token is 6 */
#include <npushmem.h>
#include <stdio.h>

/* Global variables are symmetric: each PE has a copy, and the name also means the copies of the other PEs. */
static long token = 0;

int main(void) {
    npushmem_init();
    int started = 0;
    npushmem_query_initialized(&started);
    if (!started) { /* the library has printed the cause */
        fprintf(stderr, "ring: cannot start npushmem\n");
        return 1;
    }
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    const int next = (me + 1) % n;
    int good = 1;
    for (int lap = 1; lap <= 2; ++lap) {
        /* The token has visited every PE lap - 1 times, and in this lap those before this PE. PE 0 starts each lap with
         * the token that it has. The others wait for a value that only this lap can bring. */
        const long expected = (long)(lap - 1) * n + me;
        if (me > 0) npushmem_long_wait_until(&token, NPUSHMEM_CMP_GE, expected);
        good = good && token == expected;
        npushmem_long_p(&token, token + 1, next);
        /* The lap ends when the token is back at PE 0. */
        if (me == 0) {
            npushmem_long_wait_until(&token, NPUSHMEM_CMP_GE, (long)lap * n);
            good = good && token == (long)lap * n;
            printf("lap %d of the ring: the token is %ld\n", lap, token);
        }
    }
    if (!good) fprintf(stderr, "PE %d: the token had a wrong value\n", me);
    npushmem_finalize(); /* waits for all PEs */
    return good ? 0 : 1;
}
