/* SPDX-License-Identifier: BSD-3-Clause */
/* Static variables as symmetric objects in C, as programs of OpenSHMEM have them: standard names, start_pes, pSync and
 * pWrk in static storage. Prints what differs; the exit status is 1 then. */
#include <shmem.h>
#include <stdio.h>

static int failures = 0;

#define EXPECT(CONDITION)                                                          \
    do {                                                                           \
        if (!(CONDITION)) {                                                        \
            ++failures;                                                            \
            fprintf(stderr, "statics_c.c:%d: not so: %s\n", __LINE__, #CONDITION); \
        }                                                                          \
    } while (0)

static long pSync[SHMEM_REDUCE_SYNC_SIZE];
static long bSync[SHMEM_BCAST_SYNC_SIZE];
static int pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
int source = 3;
int sum;
static long target[10] = {9};
static uint64_t words[4];

int main(void) {
    start_pes(0);
    const int me = shmem_my_pe();
    const int npes = shmem_n_pes();
    const int right = (me + 1) % npes;
    const int left = (me + npes - 1) % npes;
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) pSync[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; ++i) bSync[i] = SHMEM_SYNC_VALUE;
    EXPECT(target[0] == 9 && source == 3);
    source = me + 1;
    shmem_barrier_all();
    shmem_int_sum_to_all(&sum, &source, 1, 0, 0, npes, pWrk, pSync);
    EXPECT(sum == npes * (npes + 1) / 2);
    long values[10];
    for (int i = 0; i < 10; ++i) values[i] = me * 100 + i;
    shmem_put(target, values, 10, right);
    shmem_barrier_all();
    for (int i = 0; i < 10; ++i) EXPECT(target[i] == left * 100 + i);
    EXPECT(shmem_g(&source, right) == right + 1);
    shmem_barrier_all();
    target[1] = me == 0 ? 42 : 0;
    shmem_broadcast64(target + 2, target + 1, 1, 0, 0, 0, npes, bSync);
    EXPECT(me == 0 || target[2] == 42);
    shmem_atomic_inc(&words[1], right);
    shmem_wait_until(&words[1], SHMEM_CMP_EQ, 1);
    EXPECT(words[0] == 0 && words[2] == 0);
    shmem_barrier_all();
    EXPECT(shmem_ptr(target, me) == target);
    shmem_finalize();
    return failures == 0 ? 0 : 1;
}
