/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective operations, one source for npushmem, OpenSHMEM (-DPEER) and MPI (-DUSE_MPI). Prints lines
 * "<kernel>/<PEs> <bytes> <nanoseconds>" on PE 0; each is the minimum of the batches' means. "memcpy" kernels
 * copy, on every PE at once, the bytes that the operation delivers to it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef USE_MPI
#include <mpi.h>
static int this_pe(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}
static int pes(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}
static void start(void) { MPI_Init(NULL, NULL); }
static void stop(void) { MPI_Finalize(); }
static void* allocate(size_t bytes) { return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); }
static void synchronise(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void broadcast(long* dest, long* source, size_t count) {
    MPI_Bcast(this_pe() == 0 ? source : dest, (int)count, MPI_LONG, 0, MPI_COMM_WORLD);
}
static void reduce(long* dest, long* source, size_t count) {
    MPI_Allreduce(source, dest, (int)count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}
static void fcollect(long* dest, long* source, size_t count) {
    MPI_Allgather(source, (int)count, MPI_LONG, dest, (int)count, MPI_LONG, MPI_COMM_WORLD);
}
static void alltoall(long* dest, long* source, size_t count) {
    MPI_Alltoall(source, (int)count, MPI_LONG, dest, (int)count, MPI_LONG, MPI_COMM_WORLD);
}
#else
#include "names.h"
static int this_pe(void) { return SHMEM(my_pe)(); }
static int pes(void) { return SHMEM(n_pes)(); }
static void start(void) { SHMEM(init)(); }
static void stop(void) { SHMEM(finalize)(); }
static void* allocate(size_t bytes) { return SHMEM(align)(4096, bytes); }
static void synchronise(void) { SHMEM(barrier_all)(); }
#ifdef PEER
static long sync_words[2][SHMEM_REDUCE_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE];
static long work[(8 << 20) / 16 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static int turn;
/* Two, used alternately, as the standard requires for successive calls. */
static long* psync(void) { return sync_words[turn++ % 2]; }
static void broadcast(long* dest, long* source, size_t count) {
    shmem_broadcast64(dest, source, count, 0, 0, 0, pes(), psync());
}
static void reduce(long* dest, long* source, size_t count) {
    shmem_long_sum_to_all(dest, source, (int)count, 0, 0, pes(), work, psync());
}
static void fcollect(long* dest, long* source, size_t count) {
    shmem_fcollect64(dest, source, count, 0, 0, pes(), psync());
}
static void alltoall(long* dest, long* source, size_t count) {
    shmem_alltoall64(dest, source, count, 0, 0, pes(), psync());
}
#else
static void broadcast(long* dest, long* source, size_t count) {
    npushmem_long_broadcast(NPUSHMEM_TEAM_WORLD, dest, source, count, 0);
}
static void reduce(long* dest, long* source, size_t count) {
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, dest, source, count);
}
static void fcollect(long* dest, long* source, size_t count) {
    npushmem_long_fcollect(NPUSHMEM_TEAM_WORLD, dest, source, count);
}
static void alltoall(long* dest, long* source, size_t count) {
    npushmem_long_alltoall(NPUSHMEM_TEAM_WORLD, dest, source, count);
}
#endif
#endif

#ifndef USE_MPI
static void allocate_and_free(long* dest, long* source, size_t count) {
    (void)dest, (void)source;
    SHMEM(free)(SHMEM(malloc)(count * sizeof(long)));
}
#endif

enum { largest = 8 << 20, room_bytes = 64 << 20, batches = 12 };

static void barrier(long* dest, long* source, size_t count) {
    (void)dest, (void)source, (void)count;
    synchronise();
}

/* The bytes that fcollect and alltoall deliver to a PE: a block of `count` elements from each PE. */
static void copy_blocks(long* dest, long* source, size_t count) {
    const size_t bytes = count * sizeof(long);
    const int n = pes();
    for (int i = 0; i < n; ++i) memcpy((char*)dest + (size_t)i * bytes, (char*)source + (size_t)i * bytes, bytes);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static long fewer_calls = 1;

typedef void (*Kernel)(long* dest, long* source, size_t count);

static void measure(const char* name, Kernel kernel, long* dest, long* source, size_t bytes) {
    const size_t moved = bytes * (size_t)pes();
    const long calls = (moved < 65536 ? 400 : (long)((16 << 20) / moved) + 2) / fewer_calls + 1;
    double least = 1e30;
    for (int batch = 0; batch < batches; ++batch) {
        synchronise();
        const double begin = now();
        for (long i = 0; i < calls; ++i) kernel(dest, source, bytes / sizeof(long));
        synchronise(); /* more PEs than cores take turns: what all of them did is what took the time */
        const double took = (now() - begin) / (double)calls;
        if (took < least) least = took;
    }
    if (this_pe() == 0) printf("%s/%d %zu %.1f\n", name, pes(), bytes, least);
}

enum { later_calls = 11 };

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* The first call of 8 bytes of each PE, and the median of later ones. */
static void measure_first(const char* name, Kernel kernel, long* dest, long* source) {
    double took[1 + later_calls];
    for (int call = 0; call <= later_calls; ++call) {
        synchronise();
        const double begin = now();
        kernel(dest, source, 1);
        synchronise();
        took[call] = now() - begin;
    }
    qsort(took + 1, later_calls, sizeof took[0], compare);
    if (this_pe() != 0) return;
    printf("first_%s/%d 8 %.1f\n", name, pes(), took[0]);
    printf("later_%s/%d 8 %.1f\n", name, pes(), took[1 + later_calls / 2]);
}

int main(int argc, char** argv) {
    const char* only = argc > 1 ? argv[1] : "";
    const int is_first = strcmp(only, "first") == 0;
    if (argc > 2) fewer_calls = atol(argv[2]);
    start();
    const size_t n = (size_t)pes();
    if (strcmp(only, "first-heap") == 0) {
#ifndef USE_MPI
        measure_first("malloc+free", allocate_and_free, NULL, NULL);
#endif
        stop();
        return 0;
    }
    const size_t room = is_first ? n * sizeof(long) : room_bytes;
    long* dest = allocate(room);
    long* source = allocate(room);
    if (dest == NULL || source == NULL) return 1;
#ifdef PEER
    for (size_t i = 0; i < sizeof sync_words[0] / sizeof(long); ++i)
        sync_words[0][i] = sync_words[1][i] = SHMEM_SYNC_VALUE;
#endif
    memset(dest, 0, room);
    memset(source, 1, room);
    synchronise();
    if (is_first) {
        measure_first("reduce", reduce, dest, source);
        measure_first("fcollect", fcollect, dest, source);
        measure_first("alltoall", alltoall, dest, source);
        measure_first("broadcast", broadcast, dest, source);
        stop();
        return 0;
    }
    if (strcmp(only, "barrier") == 0) measure("barrier", barrier, dest, source, 0);
    for (size_t bytes = 8; bytes <= largest; bytes *= 8) {
        if (strstr("broadcast", only)) measure("broadcast", broadcast, dest, source, bytes);
        if (strstr("reduce", only)) measure("reduce", reduce, dest, source, bytes);
        if (bytes * n > room_bytes) continue;
        if (strstr("fcollect", only)) measure("fcollect", fcollect, dest, source, bytes);
        if (strstr("alltoall", only)) measure("alltoall", alltoall, dest, source, bytes);
        if (strstr("memcpy", only)) measure("memcpy", copy_blocks, dest, source, bytes);
    }
    synchronise();
    fflush(stdout);
    stop();
    return 0;
}
