// SPDX-License-Identifier: BSD-3-Clause
// Calls of the symmetric heap and splits of the world by more PEs than compare their records. Argument "equal": only
// calls that are equal on all PEs.
#include <cstdint>
#include <string_view>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

void test_equal_calls(Checker& check) {
    for (int call = 0; call < 10; ++call) {
        void* const object = npushmem_malloc(64);
        check.that("malloc", object != nullptr);
        npushmem_free(object);
    }
    check.no_error("equal calls");
}

void test_different_calls(Checker& check, const Job& job) {
    const bool differs = job.me == job.npes - 2;
    check.that("different sizes", npushmem_malloc(differs ? 65 : 64) == nullptr);
    check.failed_with("different sizes", NPUSHMEM_E_MISMATCH, {"malloc of 64 bytes", "malloc of 65 bytes"});
    if (differs) {
        npushmem_barrier_all();
    } else {
        check.that("no call of one PE", npushmem_malloc(64) == nullptr);
        check.failed_with("no call of one PE", NPUSHMEM_E_MISMATCH, {"makes no symmetric heap call"});
    }
    void* const large = npushmem_malloc(std::size_t{1} << 40);
    check.that("no room", large == nullptr);
    check.failed_with("no room", NPUSHMEM_E_MEMORY, {"NPUSHMEM_SYMMETRIC_SIZE"});
    test_equal_calls(check);
}

void test_splits(Checker& check, const Job& job) {
    for (int call = 0; call < 3; ++call) {
        npushmem_team_t odd = NPUSHMEM_TEAM_INVALID;
        check.equal("split", 0, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 1, 2, job.npes / 2, nullptr, 0, &odd));
        check.equal("member", job.me % 2 == 1, odd != NPUSHMEM_TEAM_INVALID);
        if (odd != NPUSHMEM_TEAM_INVALID) check.equal("sync", 0, npushmem_team_sync(odd));
        npushmem_team_destroy(odd);
        const int count = job.me == 0 ? 2 : 3;
        npushmem_team_t none = NPUSHMEM_TEAM_INVALID;
        check.equal("different counts", NPUSHMEM_E_MISMATCH,
                    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, count, nullptr, 0, &none));
        check.failed_with("different counts", NPUSHMEM_E_MISMATCH, {"0, 1, 2", "0, 1, 3"});
    }
    check.no_error("splits");
}

}  // namespace
}  // namespace npushmem::api_test

int main(int argc, char** argv) {
    using namespace npushmem::api_test;
    const bool equal_only = argc > 1 && std::string_view(argv[1]) == "equal";
    return run_family(
        "heap calls",
        [equal_only](Checker& check, const Job& job) {
            test_equal_calls(check);
            if (equal_only) return;
            test_different_calls(check, job);
            test_splits(check, job);
        },
        NPUSHMEM_THREAD_SINGLE);
}
