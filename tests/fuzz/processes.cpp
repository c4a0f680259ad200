// SPDX-License-Identifier: BSD-3-Clause
// Files of /proc and of control groups.
#include "core/base/host_facts.hpp"
#include "core/base/liveness.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

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
        case 0: return static_cast<void>(parse_process_stat(text_of(in.rest())));
        case 1: return require(parse_cpu_max(text_of(in.rest())) >= 0, "a negative quota");
        default: return check_memory(text_of(in.rest()));
    }
}

}  // namespace npushmem::fuzz
