// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/api/programs/checker.hpp"

#include <cstdio>

#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::api_test {
namespace {

constexpr int max_lines = 20;

}  // namespace

void Checker::fail(const std::string& text) {
    if (++failures_ > max_lines) return;
    fmt::print(stderr, "{}, pe {}: {}\n", family_, pe_, text);
    if (failures_ == max_lines) fmt::print(stderr, "{}, pe {}: further differences are not shown\n", family_, pe_);
}

void Checker::failed_with(std::string_view what, int code, std::initializer_list<std::string_view> words) {
    const char* message = nullptr;
    const int seen = npushmemx_last_error(&message);
    const std::string text = message != nullptr ? message : "";
    if (code != seen) fail(fmt::format("{}: expected code {}, saw {} '{}'", what, code, seen, text));
    for (const std::string_view word : words)
        if (text.find(word) == std::string::npos) fail(fmt::format("{}: '{}' is not in '{}'", what, word, text));
    npushmemx_clear_error();
}

void Checker::no_error(std::string_view what) {
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    if (code != 0) fail(fmt::format("{}: unexpected failure {} '{}'", what, code, message));
    npushmemx_clear_error();
}

int run_family(const char* family, const std::function<void(Checker&, const Job&)>& tests, int thread_level) {
    Checker check(family);
    if (npushmem_init_thread(thread_level, nullptr) != 0) {
        check.fail("npushmem_init_thread failed");
        return check.exit_status();
    }
    const Job job{npushmem_my_pe(), npushmem_n_pes()};
    check.set_pe(job.me);
    tests(check, job);
    npushmem_finalize();
    check.no_error("after npushmem_finalize");
    return check.exit_status();
}

}  // namespace npushmem::api_test
