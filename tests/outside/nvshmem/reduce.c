/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of NVSHMEM: reductions, started from an MPI communicator (compiled with -DWITH_MPI by an MPI's compiler),
 * or by a unique id in as many processes as its argument says. */
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_MPI
#include <mpi.h>
#elif defined(WITH_SHMEM)
#include <shmem.h>
#else
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { count = 700 };

/* Small whole numbers, which half and bfloat16 have exactly: 1, 2 and 3. */
static int number(int pe, int i) { return (pe + i) % 3 + 1; }
static const uint16_t half_bits[] = {0, 0x3C00, 0x4000, 0x4200};
static const uint16_t bfloat16_bits[] = {0, 0x3F80, 0x4000, 0x4040};

static int sums(int me, int n) {
    int bad = 0;
    const size_t room = (size_t)(count * n) * sizeof(int64_t);
    int64_t* source = (int64_t*)nvshmem_malloc(room);
    int64_t* dest = (int64_t*)nvshmem_calloc(1, room);
    for (int i = 0; i < count * n; ++i) source[i] = number(me, i);
    bad += nvshmem_int64_sum_reduce(NVSHMEM_TEAM_WORLD, dest, source, count) != 0;
    for (int i = 0; i < count; ++i) {
        int64_t sum = 0;
        for (int pe = 0; pe < n; ++pe) sum += number(pe, i);
        bad += dest[i] != sum;
    }
    bad += nvshmem_int64_sum_reducescatter(NVSHMEM_TEAM_WORLD, dest, source, count) != 0;
    for (int i = 0; i < count; ++i) {
        int64_t sum = 0;
        for (int pe = 0; pe < n; ++pe) sum += number(pe, me * count + i);
        bad += dest[i] != sum;
    }
    nvshmem_free(dest);
    nvshmem_free(source);
    return bad;
}

/* The largest and the product: of 1, 2 and 3, and powers of them that are exact up to 2^8. */
static int sixteen_bits(int me, int n, cudaStream_t stream) {
    int bad = 0;
    half* a = (half*)nvshmem_malloc(2 * count * sizeof(half));
    __nv_bfloat16* b = (__nv_bfloat16*)nvshmem_malloc(2 * count * sizeof(__nv_bfloat16));
    for (int i = 0; i < count; ++i) {
        memcpy((void*)(a + i), half_bits + number(me, i), sizeof *a);
        memcpy((void*)(b + i), bfloat16_bits + number(me, i), sizeof *b);
    }
    bad += nvshmemx_half_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, a + count, a, count, stream) != 0;
    bad += nvshmemx_bfloat16_min_reduce_on_stream(NVSHMEM_TEAM_WORLD, b + count, b, count, stream) != 0;
    bad += cudaStreamSynchronize(stream) != cudaSuccess;
    for (int i = 0; i < count; ++i) {
        int largest = 0;
        int smallest = 4;
        for (int pe = 0; pe < n; ++pe) {
            largest = number(pe, i) > largest ? number(pe, i) : largest;
            smallest = number(pe, i) < smallest ? number(pe, i) : smallest;
        }
        bad += memcmp(a + count + i, half_bits + largest, sizeof *a) != 0;
        bad += memcmp(b + count + i, bfloat16_bits + smallest, sizeof *b) != 0;
    }
    nvshmem_free(b);
    nvshmem_free(a);
    return bad;
}

static int work(int rank, int size) {
    const int me = nvshmem_my_pe();
    const int n = nvshmem_n_pes();
    cudaStream_t stream;
    int bad = me != rank || n != size || cudaStreamCreate(&stream) != cudaSuccess;
    if (bad == 0) {
        bad = sums(me, n) + sixteen_bits(me, n, stream);
        cudaStreamDestroy(stream);
    }
    printf("NVSHMEM reduce: PE %d of %d %s\n", me, n, bad == 0 ? "good" : "BAD");
    fflush(stdout);
    nvshmem_finalize();
    return bad != 0;
}

#ifdef WITH_MPI

int main(int argc, char** argv) {
    int rank = 0;
    int size = 0;
    MPI_Comm communicator = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &size);
    nvshmemx_init_attr_t attr;
    attr.mpi_comm = &communicator;
    const int failed = nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr) != 0 || work(rank, size);
    MPI_Finalize();
    return failed;
}

#elif defined(WITH_SHMEM)

int main(void) {
    shmem_init();
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    const int failed = nvshmemx_init_attr(NVSHMEMX_INIT_WITH_SHMEM, &attr) != 0 || work(shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    return failed;
}

#else

/* Rank 0 makes the id and passes it to the others through a pipe. */
static int start(int rank, int size, const int* ends) {
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    int failed = rank == 0 && nvshmemx_get_uniqueid(&id) != 0;
    for (int other = 1; rank == 0 && other < size; ++other)
        failed += write(ends[1], &id, sizeof id) != (ssize_t)sizeof id;
    failed += rank != 0 && read(ends[0], &id, sizeof id) != (ssize_t)sizeof id;
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(rank, size, &id, &attr);
    failed += attr.args.uid_args.id != &id;
    return failed != 0 || nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) != 0 || work(rank, size);
}

int main(int argc, char** argv) {
    const int size = argc > 1 ? atoi(argv[1]) : 2;
    int failed = 0;
    int ends[2];
    if (pipe(ends) != 0) return 2;
    for (int rank = 0; rank < size; ++rank) {
        const pid_t child = fork();
        if (child == 0) return start(rank, size, ends);
        failed += child < 0;
    }
    for (int status = 0; wait(&status) > 0;) failed += status != 0;
    return failed != 0;
}

#endif
