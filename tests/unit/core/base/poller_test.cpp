// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/poller.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <utility>

namespace npushmem {
namespace {

class PollerTest : public ::testing::Test {
protected:
    void SetUp() override {
        auto opened = Poller::open();
        ASSERT_TRUE(opened.ok());
        poller_ = std::move(opened).value();
    }

    Poller poller_;
    FileDescriptor event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

TEST_F(PollerTest, ReportsTheKeyOfAReadyDescriptor) {
    ASSERT_TRUE(poller_.watch(event_.get(), 1ULL << 40).ok());
    EXPECT_TRUE(poller_.wait(0).empty());
    ASSERT_EQ(::eventfd_write(event_.get(), 1), 0);
    const auto events = poller_.wait(-1);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].key, 1ULL << 40);
    EXPECT_TRUE(events[0].readable());
    EXPECT_FALSE(events[0].writable());
}

TEST_F(PollerTest, ModifyChangesTheEvents) {
    ASSERT_TRUE(poller_.watch(event_.get(), 1).ok());
    poller_.modify(event_.get(), 1, EPOLLIN | EPOLLOUT);
    const auto events = poller_.wait(0);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_TRUE(events[0].writable());
    poller_.modify(event_.get(), 1, 0);
    EXPECT_TRUE(poller_.wait(0).empty());
}

TEST_F(PollerTest, ForgetsRemovedAndClosedDescriptors) {
    ASSERT_EQ(::eventfd_write(event_.get(), 1), 0);
    ASSERT_TRUE(poller_.watch(event_.get(), 1).ok());
    poller_.remove(event_.get());
    EXPECT_TRUE(poller_.wait(0).empty());
    ASSERT_TRUE(poller_.watch(event_.get(), 1).ok());
    event_.reset();
    EXPECT_TRUE(poller_.wait(0).empty());
}

TEST_F(PollerTest, NamesADescriptorThatItCannotWatch) {
    const Status status = poller_.watch(1 << 20, 1);
    EXPECT_EQ(status.code(), Code::system);
    EXPECT_NE(status.message().find("1048576"), std::string::npos);
}

TEST(FileDescriptor, HasOneOwner) {
    FileDescriptor first(::eventfd(0, EFD_CLOEXEC));
    const int number = first.get();
    FileDescriptor second(std::move(first));
    EXPECT_EQ(second.get(), number);
    second = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
    EXPECT_NE(second.get(), number) << "the new descriptor exists before the old one closes";
    second.reset();
    EXPECT_FALSE(second.valid());
}

}  // namespace
}  // namespace npushmem
