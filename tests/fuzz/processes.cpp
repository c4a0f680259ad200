// SPDX-License-Identifier: BSD-3-Clause
// Files of /proc and of control groups.
#include "core/base/host_facts.hpp"
#include "core/base/liveness.hpp"
#include "tests/fuzz/targets.hpp"
#include "transports/shared/memory_handle.hpp"

namespace npushmem::fuzz {
namespace {

void check_stat(std::string_view text) {
    const auto stat = parse_process_stat(text);
    const std::uint64_t start = shared_memory::start_time_in(text);
    require(!stat || start == stat->start || text.rfind(')') != text.rfind(") "), "two readers differ");
}

// Every file has the same content.
void check_memory(std::string_view text) {
    const FileReader read = [text](const std::string&) { return std::optional(std::string(text)); };
    (void)available_memory(read);
    require(cgroup_quota(text, read) >= 0, "a negative quota");
}

}  // namespace

// The first byte selects the check.
void processes(Input input) {
    Taker in(input);
    switch (in.byte() % 3) {
        case 0: return check_stat(text_of(in.rest()));
        case 1: return require(parse_cpu_max(text_of(in.rest())) >= 0, "a negative quota");
        default: return check_memory(text_of(in.rest()));
    }
}

}  // namespace npushmem::fuzz
