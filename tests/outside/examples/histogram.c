/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram whose bins are spread over the PEs. Each PE throws two dice 60000 times and increments the bin of the sum
 * by an atomic, on whichever PE the bin is. Many PEs may increment one bin at the same time: no count is lost.
 *
 *     $ npushmem-run -n 4 ./histogram
 *     sum  2:  6847
 *     sum  3: 13464
 *     sum  4: 19969
 *     sum  5: 26518
 *     sum  6: 33507
 *     sum  7: 39979
 *     sum  8: 33293
 *     sum  9: 26516
 *     sum 10: 19959
 *     sum 11: 13315
 *     sum 12:  6633
 *     240000 throws of 240000 were counted */
#include <npushmem.h>
#include <stdint.h>
#include <stdio.h>

enum { bins = 11, throws = 60000 }; /* the sums 2 to 12 */

/* Bin b is the element b / n on PE b % n. Large enough for a single PE that has all bins. */
static long count[bins];
/* The arguments of a reduction are symmetric as well. */
static long mine, total;

/* One die: 0 to 5. A linear congruential generator; its upper bits are random enough here. */
static int die(uint64_t* state) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (int)((*state >> 33) % 6);
}

int main(void) {
    npushmem_init();
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();

    uint64_t state = (uint64_t)me + 1;
    for (int i = 0; i < throws; ++i) {
        const int bin = die(&state) + die(&state);
        /* Returns nothing, so it need not wait for the other PE. */
        npushmem_long_atomic_inc(&count[bin / n], bin % n);
    }
    /* Completes the atomics of all PEs. */
    npushmem_barrier_all();

    mine = 0;
    for (int i = 0; i < bins; ++i) mine += count[i];
    if (npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, &total, &mine, 1) != 0) return 1;

    const long expected = (long)throws * n;
    if (me == 0) {
        for (int bin = 0; bin < bins; ++bin) {
            printf("sum %2d: %5ld\n", bin + 2, npushmem_long_atomic_fetch(&count[bin / n], bin % n));
        }
        printf("%ld throws of %ld were counted\n", total, expected);
    }
    npushmem_finalize();
    return total == expected ? 0 : 1;
}
