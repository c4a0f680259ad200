/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that uses npushmem on a part of its ranks, with MPI at work before, beside and after it.
 *     mpi_ring world   npushmem on all ranks, found by itself
 *     mpi_ring part    npushmem on the even and the odd ranks, each a job of its own
 *     mpi_ring id      npushmem on all ranks, by a unique id that MPI passes on */
#include <mpi.h>
#include <npushmemx.h>
#include <stdio.h>
#include <string.h>

static int sum_of_ranks(MPI_Comm communicator) {
    int rank = 0;
    int sum = 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, communicator);
    return sum;
}

static int ring(MPI_Comm communicator) {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &size);
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    long* slot = npushmem_malloc(sizeof *slot);
    if (me != rank || n != size || slot == NULL) return 4;
    *slot = -1;
    npushmem_barrier_all();
    npushmem_long_p(slot, me, (me + 1) % n);
    const int sum = sum_of_ranks(communicator);
    npushmem_barrier_all();
    const int good = *slot == (me + n - 1) % n && sum == n * (n - 1) / 2;
    printf("ring: PE %d of %d %s\n", me, n, good ? "good" : "BAD");
    npushmem_free(slot);
    return good ? 0 : 5;
}

static int start_by_id(npushmemx_init_attr_t* attr) {
    int rank = 0;
    int size = 0;
    npushmemx_uniqueid_t id;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0 && npushmemx_get_uniqueid(&id) != 0) return 6;
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (npushmemx_set_attr_uniqueid_args(rank, size, &id, attr) != 0) return 6;
    return npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, attr);
}

int main(int argc, char** argv) {
    int rank = 0;
    int failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int in_part = argc > 1 && strcmp(argv[1], "part") == 0;
    MPI_Comm communicator = MPI_COMM_WORLD;
    if (in_part) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &communicator);
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    attr.attribute = in_part ? &communicator : NULL;
    const int by_id = argc > 1 && strcmp(argv[1], "id") == 0;
    if ((by_id ? start_by_id(&attr) : npushmemx_init_attr(0, &attr)) != 0) return 6;
    failed = ring(communicator);
    npushmem_finalize();
    (void)sum_of_ranks(MPI_COMM_WORLD);
    if (in_part) MPI_Comm_free(&communicator);
    MPI_Finalize();
    return failed;
}
