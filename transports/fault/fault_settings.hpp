// What the fault decorator is asked to do, read from its configuration rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::fault {

// Functions that can be told to fail.
enum class Function : std::size_t {
    connect,
    register_memory,
    import_memory,
    create_queue,
    put,
    get,
    atomic,
    put_signal,
    fence,
    quiet
};
constexpr std::size_t function_count = 10;
std::string_view name_of(Function function);

// "put:3:timeout": the third call of put fails with Code::timeout.
struct FailRule {
    Function function;
    std::uint64_t call;  // from 1
    Code code;
};

struct Settings {
    std::uint64_t seed = 1;
    std::uint32_t delay = 4;          // an operation is held for 0 to this many steps, at random
    bool reorder = true;              // apply in random order what nothing orders
    std::uint32_t again_percent = 0;  // of postings answered "again"
    std::vector<FailRule> fail;
};

// Errors name the variable, the value and what would be accepted.
Result<Settings> read_settings(const Host& host);
Result<std::vector<FailRule>> parse_fail_rules(std::string_view text);

}  // namespace npushmem::fault
