// SPDX-License-Identifier: BSD-3-Clause
// Compiled with Open MPI's mpi.h, whose predefined handles are addresses of objects in the library.
#include "collectives/mpi/calls.hpp"

namespace npushmem::mpi {

namespace {

constexpr std::array<const char*, types> type_symbols{"ompi_mpi_int8_t",
                                                      "ompi_mpi_int16_t",
                                                      "ompi_mpi_int32_t",
                                                      "ompi_mpi_int64_t",
                                                      "ompi_mpi_uint8_t",
                                                      "ompi_mpi_uint16_t",
                                                      "ompi_mpi_uint32_t",
                                                      "ompi_mpi_uint64_t",
                                                      nullptr,
                                                      nullptr,
                                                      "ompi_mpi_float",
                                                      "ompi_mpi_double",
                                                      "ompi_mpi_long_double",
                                                      "ompi_mpi_c_float_complex",
                                                      "ompi_mpi_c_double_complex"};
constexpr std::array<const char*, operations> operation_symbols{
    "ompi_mpi_op_band", "ompi_mpi_op_bor", "ompi_mpi_op_bxor", "ompi_mpi_op_max",
    "ompi_mpi_op_min",  "ompi_mpi_op_sum", "ompi_mpi_op_prod"};

}  // namespace

Result<std::unique_ptr<Collectives>> make_openmpi_collectives(const JobShape& job, std::string description) {
    auto found = find_calls();
    if (!found.ok()) return found.status();
    Calls& calls = found.value();
    bool all = look_up("ompi_mpi_comm_world", calls.world) && look_up("ompi_mpi_errors_return", calls.errors_return) &&
               look_up("ompi_mpi_byte", calls.byte);
    for (std::size_t type = 0; type < types && all; ++type)
        all = type_symbols[type] == nullptr || look_up(type_symbols[type], calls.type[type]);
    for (std::size_t operation = 0; operation < operations && all; ++operation)
        all = look_up(operation_symbols[operation], calls.operation[operation]);
    if (!all)
        return Status{Code::unsupported,
                      "this Open MPI lacks the predefined objects of the mpi.h that the plugin was built with"};
    return make_collectives(calls, job, std::move(description));
}

}  // namespace npushmem::mpi
