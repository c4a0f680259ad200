// SPDX-License-Identifier: BSD-3-Clause
// Compiled with MPICH's mpi.h, whose predefined handles are numbers; they are the same in all its derivatives.
#include "collectives/mpi/calls.hpp"

namespace npushmem::mpi {

Result<std::unique_ptr<Collectives>> make_mpich_collectives(const JobShape& job, std::string description) {
    auto found = find_calls();
    if (!found.ok()) return found.status();
    Calls& calls = found.value();
    calls.world = MPI_COMM_WORLD;
    calls.errors_return = MPI_ERRORS_RETURN;
    calls.byte = MPI_BYTE;
    calls.type = {MPI_INT8_T,   MPI_INT16_T,  MPI_INT32_T,     MPI_INT64_T,         MPI_UINT8_T,
                  MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T,    MPI_DATATYPE_NULL,   MPI_DATATYPE_NULL,
                  MPI_FLOAT,    MPI_DOUBLE,   MPI_LONG_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX};
    calls.operation = {MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD};
    return make_collectives(calls, job, std::move(description));
}

}  // namespace npushmem::mpi
