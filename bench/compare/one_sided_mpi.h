/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that kernels.c uses, over MPI's one-sided operations: one window of every rank, in a passive epoch that
 * never ends. Addresses in the window stand for the same offset of every rank. put is complete locally, quiet
 * everywhere. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define SHMEM(name) mpi_##name
#define SHMEM_CMP(name) 0

enum { window_bytes = 64 << 20 };

static MPI_Win window;
static char* window_base;
static size_t window_used;

static int mpi_my_pe(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}
static int mpi_n_pes(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}
static void mpi_init(void) {
    MPI_Init(NULL, NULL);
    MPI_Win_allocate(window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_base, &window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
}
static void mpi_finalize(void) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
}
static void mpi_barrier_all(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Blocks are never reused: the kernels take a few. */
static void* mpi_align(size_t alignment, size_t bytes) {
    const size_t first =
        ((uintptr_t)window_base + window_used + alignment - 1) / alignment * alignment - (uintptr_t)window_base;
    if (first + bytes > window_bytes) return NULL;
    window_used = first + bytes;
    return window_base + first;
}
static void* mpi_malloc(size_t bytes) { return mpi_align(64, bytes); }
static void mpi_free(void* block) { (void)block; }

static MPI_Aint offset_of(const void* symmetric) { return (const char*)symmetric - window_base; }

static void mpi_putmem(void* dest, const void* source, size_t bytes, int pe) {
    MPI_Put(source, (int)bytes, MPI_BYTE, pe, offset_of(dest), (int)bytes, MPI_BYTE, window);
    MPI_Win_flush_local(pe, window);
}
static void mpi_getmem(void* dest, const void* source, size_t bytes, int pe) {
    MPI_Get(dest, (int)bytes, MPI_BYTE, pe, offset_of(source), (int)bytes, MPI_BYTE, window);
    MPI_Win_flush(pe, window);
}
static void mpi_quiet(void) { MPI_Win_flush_all(window); }
static void mpi_long_p(long* dest, long value, int pe) { mpi_putmem(dest, &value, sizeof value, pe); }
static long mpi_long_g(const long* source, int pe) {
    long value = 0;
    mpi_getmem(&value, source, sizeof value, pe);
    return value;
}
static long mpi_long_atomic_fetch_add(long* dest, long value, int pe) {
    long before = 0;
    MPI_Fetch_and_op(&value, &before, MPI_LONG, pe, offset_of(dest), MPI_SUM, window);
    MPI_Win_flush(pe, window);
    return before;
}
/* "At least", in this rank's part. A probe lets the library deliver what it emulates. */
static void mpi_long_wait_until(long* word, int comparison, long value) {
    int flag;
    (void)comparison;
    while (*(volatile long*)word < value) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Win_sync(window);
    }
}
