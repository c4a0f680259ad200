// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/registration_cache.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "tests/unit/transports/verbs/fake_verbs.hpp"
#include "transports/verbs/ports.hpp"

namespace npushmem::verbs {
namespace {

using fakes::FakeVerbs;
using fakes::FakeWatch;

constexpr std::uint64_t page = 4096;

class RegistrationCacheTest : public ::testing::Test {
protected:
    RegistrationCacheTest() {
        verbs_->add_device("fake0");
        std::vector<std::string> notes;
        const auto ports = list_ports(*verbs_, notes);
        port_ = OpenedPort::open(verbs_, ports.value().front(), VerbsSettings{}).value();
        make(8 * page);
    }
    void make(std::uint64_t max_bytes) {
        cache_ = std::make_unique<RegistrationCache>(port_->domain(), watch_, max_bytes);
    }
    [[nodiscard]] const void* at(std::uint64_t offset) const { return reinterpret_cast<const void*>(place_ + offset); }
    RegistrationCache::Registration find(std::uint64_t offset, std::uint64_t bytes) {
        return cache_->find(at(offset), bytes);
    }
    // As by two transfers.
    RegistrationCache::Registration keep(std::uint64_t offset, std::uint64_t bytes) {
        (void)find(offset, bytes);
        return find(offset, bytes);
    }
    void change(std::uint64_t offset, std::uint64_t bytes) {
        watch_->gone.push_back({place_ + offset, place_ + offset + bytes});
    }

    std::shared_ptr<FakeVerbs> verbs_ = std::make_shared<FakeVerbs>();
    std::shared_ptr<FakeWatch> watch_ = std::make_shared<FakeWatch>();
    std::unique_ptr<OpenedPort> port_;
    std::unique_ptr<RegistrationCache> cache_;
    std::uintptr_t place_ = 1U << 30;  // fake devices do not look at it
};

TEST_F(RegistrationCacheTest, ABufferIsKeptFromItsSecondUseOnWithItsPages) {
    EXPECT_EQ(find(100, 5000), nullptr);
    EXPECT_EQ(verbs_->registered_bytes(), 0U);
    const auto kept = find(100, 5000);
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(kept->addr, at(0));
    EXPECT_EQ(kept->length, 2 * page);
    EXPECT_EQ(watch_->watched.size(), 1U);
    EXPECT_EQ(find(4000, 200), kept) << "a part of it";
    EXPECT_EQ(verbs_->calls["reg_mr"], 1);
    EXPECT_EQ(find(4000, 2 * page), nullptr) << "beyond it";
}

TEST_F(RegistrationCacheTest, AChangeOfThePagesEndsARegistration) {
    struct Change {
        std::uint64_t offset;
        std::uint64_t bytes;
        bool ends_it;
    };
    for (const Change& each : {Change{0, 4 * page, true}, Change{3 * page, page, true}, Change{0, page, true},
                               Change{page, page, true}, Change{8 * page, page, false}}) {
        make(8 * page);
        ASSERT_NE(keep(page, 3 * page - 1), nullptr);
        const int before = verbs_->calls["reg_mr"];
        change(each.offset == 0 && each.bytes == page ? page : each.offset, each.bytes);
        EXPECT_EQ(find(page, page) == nullptr, each.ends_it) << each.offset;
        EXPECT_EQ(verbs_->calls["reg_mr"], before);
        EXPECT_EQ(cache_->bytes(), each.ends_it ? 0 : 3 * page);
        EXPECT_EQ(verbs_->registered_bytes(), cache_->bytes());
    }
}

TEST_F(RegistrationCacheTest, AChangeInProgressPreventsUse) {
    const auto kept = keep(0, page);
    watch_->result = MemoryWatch::ChangesResult::in_progress;
    EXPECT_EQ(find(0, page), nullptr);
    EXPECT_EQ(find(0, page), nullptr);
    watch_->result = MemoryWatch::ChangesResult::all;
    EXPECT_EQ(find(0, page), kept) << "it was another's";
    EXPECT_EQ(verbs_->calls["reg_mr"], 1);
}

TEST_F(RegistrationCacheTest, AnOverflowOfTheWatchInvalidatesAll) {
    ASSERT_NE(keep(0, page), nullptr);
    watch_->result = MemoryWatch::ChangesResult::overflow;
    EXPECT_EQ(find(0, page), nullptr);
    EXPECT_EQ(verbs_->registered_bytes(), 0U);
    watch_->result = MemoryWatch::ChangesResult::all;
    EXPECT_NE(keep(0, page), nullptr) << "from its second use on, as at first";
}

TEST_F(RegistrationCacheTest, ATransferKeepsItsRegistrationToTheEnd) {
    auto used = keep(0, page);
    change(0, page);
    EXPECT_EQ(find(4 * page, page), nullptr);
    EXPECT_EQ(verbs_->registered_bytes(), page) << "a device may still use it";
    used.reset();
    EXPECT_EQ(verbs_->registered_bytes(), 0U);
}

TEST_F(RegistrationCacheTest, TheLeastRecentlyUsedIsEvicted) {
    make(3 * page);
    for (const std::uint64_t offset : {0U, 10U, 20U}) ASSERT_NE(keep(offset * page, page), nullptr);
    EXPECT_NE(find(0, page), nullptr);
    ASSERT_NE(keep(30 * page, page), nullptr);
    EXPECT_EQ(cache_->bytes(), 3 * page);
    EXPECT_NE(find(0, page), nullptr);
    EXPECT_NE(find(20 * page, page), nullptr);
    EXPECT_NE(find(30 * page, page), nullptr);
    const int before = verbs_->calls["reg_mr"];
    EXPECT_NE(find(10 * page, page), nullptr) << "anew";
    EXPECT_EQ(verbs_->calls["reg_mr"], before + 1);
    EXPECT_EQ(keep(100 * page, 4 * page), nullptr) << "more than all";
    EXPECT_EQ(verbs_->registered_bytes(), cache_->bytes());
}

TEST_F(RegistrationCacheTest, TheNumberOfEntriesIsBoundedToo) {
    make(1ULL << 40);
    for (std::uint64_t i = 0; i < RegistrationCache::max_entries + 5; ++i) ASSERT_NE(keep(2 * i * page, page), nullptr);
    EXPECT_EQ(cache_->size(), RegistrationCache::max_entries);
}

TEST_F(RegistrationCacheTest, BuffersThatOverlapReplaceEachOther) {
    ASSERT_NE(keep(0, 2 * page), nullptr);
    ASSERT_NE(keep(page, 2 * page), nullptr);
    EXPECT_EQ(cache_->size(), 1U);
    EXPECT_NE(find(2 * page, page), nullptr);
    EXPECT_EQ(find(0, page), nullptr);
}

TEST_F(RegistrationCacheTest, KeepsNothingUnwatchedOrWithLimitZero) {
    watch_->can = false;
    EXPECT_EQ(keep(0, page), nullptr);
    watch_->can = true;
    make(0);
    EXPECT_EQ(keep(0, page), nullptr);
    RegistrationCache blind(port_->domain(), nullptr, 8 * page);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(blind.find(at(0), page), nullptr);
    EXPECT_EQ(verbs_->calls["reg_mr"], 0);
}

TEST_F(RegistrationCacheTest, UnwatchableMemoryIsTriedOnce) {
    watch_->can = false;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(find(0, page), nullptr);
    EXPECT_EQ(watch_->watched.size(), 1U);
    watch_->can = true;
    EXPECT_EQ(find(0, page), nullptr);
    change(0, page);
    EXPECT_NE(find(0, page), nullptr) << "it is something else now";
}

TEST_F(RegistrationCacheTest, MemoryThatTheDeviceRejectsIsTriedOnceAndEvictsNothing) {
    make(2 * page);
    const auto good = keep(0, 2 * page);
    verbs_->fail("reg_mr", EFAULT);
    const int before = verbs_->calls["reg_mr"];
    for (int i = 0; i < 5; ++i) EXPECT_EQ(find(10 * page, page), nullptr);
    EXPECT_EQ(verbs_->calls["reg_mr"], before + 1);
    EXPECT_EQ(find(0, page), good);
}

TEST_F(RegistrationCacheTest, MemoryWithoutRoomIsTriedAgain) {
    verbs_->fail("reg_mr", ENOMEM);
    EXPECT_EQ(keep(0, page), nullptr);
    verbs_->clear_fault("reg_mr");
    EXPECT_NE(find(0, page), nullptr);
}

TEST_F(RegistrationCacheTest, DropsUnusedRegistrationsWhenTheDeviceHasNoRoom) {
    port_->domain().set_reclaim([this] { return cache_->drop_unused(); });
    const auto used = keep(0, page);
    ASSERT_NE(keep(10 * page, page), nullptr);
    verbs_->fail("reg_mr", ENOMEM);
    EXPECT_EQ(port_->domain().register_memory(nullptr, page, 0).status().code(), Code::memory);
    EXPECT_EQ(cache_->size(), 1U);
    EXPECT_EQ(verbs_->registered_bytes(), page);
    verbs_->clear_fault("reg_mr");
    EXPECT_TRUE(port_->domain().register_memory(nullptr, page, 0).ok());
}

}  // namespace
}  // namespace npushmem::verbs
