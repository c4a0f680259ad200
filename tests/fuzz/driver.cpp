// SPDX-License-Identifier: BSD-3-Clause
// Connects libFuzzer to one target: npushmem-fuzz --target=<name> <options and folders of libFuzzer>.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.hpp"

namespace {

const npushmem::fuzz::Target* target = nullptr;  // set before the first input

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    constexpr std::string_view option = "--target=";
    for (int i = 1; i < *argc; ++i) {
        const std::string_view argument = (*argv)[i];
        for (const auto& each : npushmem::fuzz::targets)
            if (argument.starts_with(option) && argument.substr(option.size()) == each.name) target = &each;
    }
    if (target != nullptr) return 0;
    std::fputs("npushmem-fuzz: give --target=<name>, one of:", stderr);
    for (const auto& each : npushmem::fuzz::targets) std::fprintf(stderr, " %s", each.name.data());
    std::fputs("\n", stderr);
    std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    target->run(std::as_bytes(std::span(data, size)));
    return 0;
}
