/* SPDX-License-Identifier: BSD-3-Clause */
/* Times each operation by itself, as perftest's latency programs do, so that medians and means are comparable. Two PEs;
 * PE 0 prints lines "<operation> <median> <mean>" in nanoseconds. latency [<operations of each sort>, default 3000] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "names.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

static void report(const char* operation, double* times, long count) {
    double sum = 0;
    if (SHMEM(my_pe)() != 0) return;
    for (long i = 0; i < count; ++i) sum += times[i];
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%s %.0f %.0f\n", operation, times[count / 2], sum / (double)count);
}

/* Half of a word's round trip to the other PE. */
static void put_one_way(long* word, double* times, long count) {
    for (long i = 1; i <= count; ++i) {
        const double begin = now();
        if (SHMEM(my_pe)() == 0) SHMEM(long_p)(word, i, 1);
        SHMEM(long_wait_until)(word, SHMEM_CMP(GE), i);
        if (SHMEM(my_pe)() == 1) SHMEM(long_p)(word, i, 0);
        times[i - 1] = (now() - begin) / 2;
    }
    report("put", times, count);
}

static void fetch_add(long* word, double* times, long count) {
    for (long i = 0; i < count && SHMEM(my_pe)() == 0; ++i) {
        const double begin = now();
        (void)SHMEM(long_atomic_fetch_add)(word, 1, 1);
        times[i] = now() - begin;
    }
    report("fetch_add", times, count);
}

int main(int argc, char** argv) {
    const long count = argc > 1 ? atol(argv[1]) : 3000;
    double* times = count > 0 ? malloc((size_t)count * sizeof *times) : NULL;
    if (times == NULL) return 1;
    SHMEM(init)();
    if (SHMEM(n_pes)() != 2) {
        fprintf(stderr, "latency: it takes 2 PEs, not %d\n", SHMEM(n_pes)());
        return 1;
    }
    long* words = SHMEM(calloc)(16, sizeof *words);
    if (words == NULL) return 1;
    SHMEM(barrier_all)();
    put_one_way(words, times, count);
    SHMEM(barrier_all)();
    fetch_add(words + 8, times, count);
    SHMEM(barrier_all)();
    SHMEM(finalize)();
    free(times);
    return 0;
}
