// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/core_set.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "core/base/host_facts.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

// Asks the kernel, as an access would end the process.
bool is_accessible(const std::byte* at) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const bool accessible = ::write(ends[1], at, 1) == 1;
    for (const int end : ends) ::close(end);
    return accessible;
}

// Above the stack of core 0, so that only a guard separates them. A guard must be a page of the system.
TEST(CoreSet, PutsAPageWithoutAccessBelowAStack) {
    constexpr std::size_t stack_bytes = 64 * 1024 + 1;
    fakes::SymmetricArray array(1, 64);
    const fakes::ArrayPe pe(array, 0, {.blocks = 1, .vector_cores = 2, .stack_bytes = stack_bytes});
    std::size_t below = 0;
    const Status status = pe.run(1, [&](Core& core) {
        if (core.index() == 0) return;
        const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
        while (below < 2 * stack_bytes && is_accessible(here - below)) below += page_bytes();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_GT(below, 0U);
    EXPECT_LE(below, rounded_up(stack_bytes, page_bytes()));
}

}  // namespace
}  // namespace npushmem::npu
