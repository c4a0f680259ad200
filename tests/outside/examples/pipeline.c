/* SPDX-License-Identifier: BSD-3-Clause */
/* A pipeline: blocks of numbers go from PE 0 through all PEs to the last one. Each PE adds 1 to every number, and
 * passes the block on by a put with a signal. A PE has two slots, so that the next block arrives while it works on one.
 *
 *     $ npushmem-run -n 4 ./pipeline
 *     PE 3: 100 blocks of 1024 numbers, 0 of them wrong, sum 5580800 */
#include <npushmem.h>
#include <stdint.h>
#include <stdio.h>

enum { blocks = 100, length = 1024, slots = 2 };

static long slot[slots][length];

/* Signal words. full[s] on a PE: the number of the block (from 1) that is in its slot s; the PE before writes it.
 * taken[s] on a PE: the number of the last block that the PE behind no longer needs in its slot s. Each slot has words
 * of its own, because two puts with signal may arrive in any order. */
static uint64_t full[slots], taken[slots];

int main(void) {
    npushmem_init();
    const int me = npushmem_my_pe();
    const int last = npushmem_n_pes() - 1;
    static long work[length]; /* what PE 0 sends: its slots have no PE before them */
    long wrong = 0;
    long sum = 0;

    for (uint64_t block = 1; block <= blocks; ++block) {
        const int s = (int)(block % slots);
        long* numbers = me == 0 ? work : slot[s];

        if (me == 0) {
            for (int i = 0; i < length; ++i) numbers[i] = (long)block;
        } else {
            npushmem_signal_wait_until(&full[s], NPUSHMEM_CMP_GE, block); /* the data is then here, too */
        }
        for (int i = 0; i < length; ++i) numbers[i] += 1;

        if (me < last) {
            /* The slot of the next PE still has the block before the last one, until that PE has taken it. */
            if (block > slots) npushmem_signal_wait_until(&taken[s], NPUSHMEM_CMP_GE, block - slots);
            npushmem_long_put_signal(slot[s], numbers, length, &full[s], block, NPUSHMEM_SIGNAL_OP_SET, me + 1);
        } else {
            for (int i = 0; i < length; ++i) {
                wrong += numbers[i] != (long)block + last + 1;
                sum += numbers[i];
            }
        }
        /* The put has returned, so `numbers` may be overwritten. */
        if (me > 0) npushmem_signal_set(&taken[s], block, me - 1);
    }

    if (me == last) {
        printf("PE %d: %d blocks of %d numbers, %ld of them wrong, sum %ld\n", me, blocks, length, wrong, sum);
    }
    npushmem_finalize(); /* completes the last signals, and waits for all PEs */
    return wrong == 0 ? 0 : 1;
}
