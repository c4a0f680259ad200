/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSHMEM-shaped kernels, one source for every library: names.h defines their names. Prints lines
 * "<kernel> <bytes> <nanoseconds>" on PE 0; each is the minimum of several batches, the usual figure for a
 * comparison of two programs that do not run at the same time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "names.h"

enum { words = 256, batches = 40, largest = 8 << 20 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void report(const char* kernel, size_t bytes, double nanoseconds) {
    if (SHMEM(my_pe)() == 0) printf("%s %zu %.3f\n", kernel, bytes, nanoseconds);
}

/* Minimum time of one iteration of `body`, which uses i; PE 0 alone. */
#define MEASURE(kernel, bytes, iterations, body)                        \
    do {                                                                \
        double least = 1e30;                                            \
        for (int batch = 0; batch < batches; ++batch) {                 \
            const double begin = now();                                 \
            for (long i = 0; i < (iterations); ++i) {                   \
                body;                                                   \
            }                                                           \
            const double took = (now() - begin) / (double)(iterations); \
            if (took < least) least = took;                             \
        }                                                               \
        report(kernel, bytes, least);                                   \
    } while (0)

static void single_words(long* ring) {
    long sum = 0;
    MEASURE("p", 8, 20000, SHMEM(long_p)(ring + i % words, i, 1));
    MEASURE("put", 8, 20000, SHMEM(putmem)(ring + i % words, &i, sizeof i, 1));
    MEASURE("put+quiet", 8, 20000, SHMEM(putmem)(ring + i % words, &i, sizeof i, 1); SHMEM(quiet)());
    MEASURE("g", 8, 20000, sum += SHMEM(long_g)(ring + i % words, 1));
    MEASURE("fetch_add", 8, 20000, sum += SHMEM(long_atomic_fetch_add)(ring + i % words, 1, 1));
    if (sum == 1) printf("# %ld\n", sum); /* so that the loads are not dropped */
}

static void blocks(char* object, char* local) {
    for (size_t bytes = 1024; bytes <= largest; bytes *= 4) {
        const long iterations = (long)((4 << 20) / bytes) + 1;
        MEASURE("put", bytes, iterations, SHMEM(putmem)(object, local, bytes, 1));
        SHMEM(quiet)();
        MEASURE("get", bytes, iterations, SHMEM(getmem)(local, object, bytes, 1));
    }
    MEASURE("put", largest, 1L, SHMEM(putmem)(object, local, largest, 1));
    SHMEM(quiet)();
    MEASURE("get", largest, 1L, SHMEM(getmem)(local, object, largest, 1));
}

/* One way of a word's round trip to PE 1. */
static void ping_pong(long* word) {
    const long round_trips = 2000;
    const int pe = SHMEM(my_pe)();
    double least = 1e30;
    long count = 0;
    for (int batch = 0; batch < batches && pe < 2; ++batch) {
        const double begin = now();
        for (long i = 0; i < round_trips; ++i) {
            ++count;
            if (pe == 0) SHMEM(long_p)(word, count, 1);
            SHMEM(long_wait_until)(word, SHMEM_CMP(GE), count);
            if (pe == 1) SHMEM(long_p)(word, count, 0);
        }
        const double took = (now() - begin) / (double)round_trips / 2;
        if (took < least) least = took;
    }
    report("ping-pong", 8, least);
}

static void barriers(void) {
    const long calls = SHMEM(n_pes)() > 2 ? 300 : 2000;
    double least = 1e30;
    for (int batch = 0; batch < batches; ++batch) {
        const double begin = now();
        for (long i = 0; i < calls; ++i) SHMEM(barrier_all)();
        const double took = (now() - begin) / (double)calls;
        if (took < least) least = took;
    }
    report("barrier", (size_t)SHMEM(n_pes)(), least);
}

#ifndef USE_MPI
static void allocations(void) {
    const long pairs = 200;
    double least = 1e30;
    for (int batch = 0; batch < batches; ++batch) {
        const double begin = now();
        for (long i = 0; i < pairs; ++i) SHMEM(free)(SHMEM(malloc)(4096));
        const double took = (now() - begin) / (double)pairs;
        if (took < least) least = took;
    }
    report("malloc+free", 4096, least);
}
#endif

static void two_sided(void) {
    /* At equal offsets in a page, because the speed of a copy depends on them. */
    const size_t page = 4096;
    char* object = SHMEM(align)(page, largest);
    char* local = aligned_alloc(page, largest);
    long* word = SHMEM(malloc)(128);
    if (object == NULL || local == NULL || word == NULL) return;
    memset(object, 1, largest);
    memset(local, 2, largest);
    *word = 0;
    SHMEM(barrier_all)();
    if (SHMEM(my_pe)() == 0) {
        single_words((long*)object);
        blocks(object, local);
    }
    SHMEM(barrier_all)();
    ping_pong(word);
    SHMEM(barrier_all)();
#ifndef USE_MPI /* nothing corresponds there */
    allocations();
#endif
    SHMEM(free)(word);
    free(local);
    SHMEM(free)(object);
}

/* Arguments: words (2 PEs), barrier (any number), empty (a job that does nothing). */
int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "words";
    SHMEM(init)();
    SHMEM(barrier_all)();
    if (strcmp(what, "words") == 0) two_sided();
    if (strcmp(what, "barrier") == 0) barriers();
    SHMEM(barrier_all)();
    fflush(stdout);
    SHMEM(finalize)();
    return 0;
}
