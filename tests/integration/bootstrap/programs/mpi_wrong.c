/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that gives npushmem a communicator that no job can be made of:
 *     mpi_wrong inter|null|freed
 * Every rank prints whether the start was refused, and MPI goes on. */
#include <mpi.h>
#include <npushmemx.h>
#include <stdio.h>
#include <string.h>

static MPI_Comm wrong_communicator(const char* what, int rank) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm wrong = MPI_COMM_NULL;
    if (strcmp(what, "null") == 0) return wrong;
    if (strcmp(what, "freed") == 0) {
        MPI_Comm_dup(MPI_COMM_WORLD, &half);
        wrong = half;
        MPI_Comm_free(&half);
        return wrong;
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &wrong);
    MPI_Comm_free(&half);
    return wrong;
}

int main(int argc, char** argv) {
    int rank = 0;
    int sum = 0;
    const char* message = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm wrong = wrong_communicator(argv[1], rank);
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    attr.attribute = &wrong;
    const int code = npushmemx_init_attr(0, &attr);
    npushmemx_last_error(&message);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: code %d: %s\n", rank, code, message);
    MPI_Finalize();
    return 0;
}
