// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/host_memory.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "core/base/host_facts.hpp"

namespace npushmem {
namespace {

constexpr std::uint64_t slice_of_test = 1 << 20;

TEST(HostMemory, ThePesOfAHostReadWhatOneOfThemPublishes) {
    auto first = HostMemory::create(slice_of_test, 2, "");
    ASSERT_TRUE(first.ok()) << first.status().message();
    auto second =
        HostMemory::join(SharedSegment::attach(first.value().handle()), first.value().handle(), slice_of_test, 2);
    ASSERT_TRUE(second.ok()) << second.status().message();
    EXPECT_TRUE(second.value().published(HostMemory::Publication::endpoints).empty());

    const std::vector<std::byte> nics(5000, std::byte{0x11});
    const std::vector<std::byte> endpoints(100000, std::byte{0x5a});
    ASSERT_TRUE(first.value().publish(HostMemory::Publication::nics, nics).ok());
    ASSERT_TRUE(second.value().publish(HostMemory::Publication::endpoints, endpoints).ok());
    EXPECT_TRUE(std::ranges::equal(second.value().published(HostMemory::Publication::nics), nics));
    EXPECT_TRUE(std::ranges::equal(first.value().published(HostMemory::Publication::endpoints), endpoints));
    EXPECT_TRUE(first.value().published(HostMemory::Publication::processes).empty());
}

TEST(HostMemory, EachPeWritesItsPartOfReservedRoom) {
    auto first = HostMemory::create(slice_of_test, 2, "");
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_TRUE(first.value().reserved(HostMemory::Publication::endpoint_rows).empty());
    ASSERT_TRUE(first.value().reserve(HostMemory::Publication::endpoint_rows, 2).ok());
    auto second =
        HostMemory::join(SharedSegment::attach(first.value().handle()), first.value().handle(), slice_of_test, 2);
    ASSERT_TRUE(second.ok()) << second.status().message();
    first.value().reserved(HostMemory::Publication::endpoint_rows)[0] = std::byte{1};
    second.value().reserved(HostMemory::Publication::endpoint_rows)[1] = std::byte{2};
    for (HostMemory* const each : {&first.value(), &second.value()})
        EXPECT_THAT(each->published(HostMemory::Publication::endpoint_rows),
                    ::testing::ElementsAre(std::byte{1}, std::byte{2}));
    EXPECT_EQ(first.value().reserve(HostMemory::Publication::endpoints, 32 << 20).code(), Code::range);
    first.value().discard(HostMemory::Publication::endpoint_rows);
    EXPECT_TRUE(second.value().reserved(HostMemory::Publication::endpoint_rows).empty());
}

TEST(HostMemory, DataThatIsTooLargeIsNotPublished) {
    auto memory = HostMemory::create(slice_of_test, 1, "");
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    const Status refused = memory.value().publish(HostMemory::Publication::endpoints, std::vector<std::byte>(32 << 20));
    EXPECT_EQ(refused.code(), Code::range);
    EXPECT_THAT(refused.message(), ::testing::HasSubstr("data of 32 MiB"));
    EXPECT_TRUE(memory.value().published(HostMemory::Publication::endpoints).empty());
}

// All PEs finalize after the same barrier at the end of a job: a PE that is still in it misses none of them.
TEST(HostMemory, ADepartureCountsForPesThatHaveLeftItsLastBarrier) {
    auto memory = HostMemory::create(slice_of_test, 1, "");
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    EXPECT_FALSE(memory.value().has_departures(1'000'000));
    memory.value().record_departure(7);
    EXPECT_FALSE(memory.value().has_departures(6));
    EXPECT_TRUE(memory.value().has_departures(7));
    memory.value().record_departure(3);
    memory.value().record_departure(9);
    EXPECT_FALSE(memory.value().has_departures(2));
    EXPECT_TRUE(memory.value().has_departures(3));
}

}  // namespace
}  // namespace npushmem
