// SPDX-License-Identifier: BSD-3-Clause
// Memory per peer.
#include <gmock/gmock.h>
#include <malloc.h>

#include <bit>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using network::WireContext;
using test::World;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool counts_allocations = false;  // the sanitizers' allocators do not
#else
constexpr bool counts_allocations = true;
#endif

std::size_t allocated() {
    const auto found = ::mallinfo2();
    return found.uordblks + found.hblkhd;
}

TEST(VerbsMemory, APeerTakesAQueuePairAtEachEndAndNoRegisteredMemory) {
    World world;
    world.start();
    const std::size_t objects = world.verbs->objects();
    const std::size_t registered = world.verbs->registered_bytes();
    ASSERT_EQ(world.retry_until_posted([&] { return world.at(0).send({1}, Bytes(8), {}); }), Code::ok);
    EXPECT_EQ(world.verbs->objects(), objects + 4)
        << "a queue pair and an address handle for connect messages, at each end";
    EXPECT_EQ(world.verbs->registered_bytes(), registered);
}

TEST(VerbsMemory, AConnectedPeerTakesWhatItsQueueNeeds) {
    if (!counts_allocations) GTEST_SKIP() << "not with a sanitizer";
    constexpr std::size_t per_request = 24;
    constexpr std::size_t others = 8192;  // and what the fake devices take
    for (const std::uint32_t depth : {64U, 1024U, 4096U}) {
        World world;
        world.settings.queue_depth = depth;
        world.start();
        const std::size_t before = allocated();
        ASSERT_EQ(world.retry_until_posted([&] { return world.at(0).send({1}, Bytes(8), {}); }), Code::ok);
        const std::size_t each = (allocated() - before) / 2;
        EXPECT_GE(each, depth * per_request);
        EXPECT_LE(each, std::bit_ceil(depth) * per_request + others);
    }
}

TEST(VerbsMemory, AnUnusedPeerTakesNoMoreThanAPointer) {
    if (!counts_allocations) GTEST_SKIP() << "not with a sanitizer";
    const auto taken_by = [](int npes) {
        World world;
        world.add_devices(1);
        auto first = VerbsWire::open(world.verbs, world.settings, {0, npes, 0});
        const std::size_t before = allocated();
        auto wire = VerbsWire::open(world.verbs, world.settings, {0, npes, 0});
        EXPECT_TRUE(first.ok() && wire.ok() && wire.value()->address().ok());
        return allocated() - before;
    };
    constexpr int many = 10'000;
    (void)taken_by(2);
    EXPECT_LE(taken_by(2 + many) - taken_by(2), many * sizeof(void*) + 4096);
}

}  // namespace
}  // namespace npushmem::verbs
