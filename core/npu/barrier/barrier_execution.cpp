#include "core/npu/barrier/barrier_execution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/npu/source_line.hpp"
namespace npushmem::npu::barrier {

int Members::index_of(int pe) const {
    if (list_ == nullptr) return team_.index_of(pe);
    const int* found = std::find(list_, list_ + size(), pe);
    return found == list_ + size() ? -1 : static_cast<int>(found - list_);
}

void BarrierExecution::reject(int pe) const {
    const TeamView& team = members_.team();
    throw KernelError(Code::argument,
                      fmt::format("barrier: PE {} is no member of the team of {} PEs from {} by {} ({})", pe, team.size,
                                  team.start, team.stride, text_of(where_)));
}

}  // namespace npushmem::npu::barrier
