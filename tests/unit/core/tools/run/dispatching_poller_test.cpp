// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/dispatching_poller.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <vector>

#include "tests/unit/core/tools/run/make_poller.hpp"

namespace npushmem::run {
namespace {

using std::chrono::milliseconds;

class DispatchingPollerTest : public ::testing::Test {
protected:
    DispatchingPoller poller_ = make_poller();
    FileDescriptor first_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    FileDescriptor second_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::vector<int> calls_;

    void watch(const FileDescriptor& fd, int number) {
        ASSERT_TRUE(poller_.add(fd.get(), EPOLLIN, [this, number](std::uint32_t) { calls_.push_back(number); }).ok());
    }
    static void make_ready(const FileDescriptor& fd) { ASSERT_EQ(::eventfd_write(fd.get(), 1), 0); }
};

TEST_F(DispatchingPollerTest, CallsInTheOrderOfReadiness) {
    watch(first_, 1);
    watch(second_, 2);
    poller_.run_once(milliseconds(0));
    make_ready(second_);
    make_ready(first_);
    poller_.run_once(std::nullopt);
    EXPECT_EQ(calls_, (std::vector<int>{2, 1}));
}

TEST_F(DispatchingPollerTest, AHandlerMayRemoveAnotherThatIsReady) {
    ASSERT_TRUE(poller_
                    .add(first_.get(), EPOLLIN,
                         [this](std::uint32_t) {
                             calls_.push_back(1);
                             poller_.remove(first_.get());
                             poller_.remove(second_.get());
                         })
                    .ok());
    watch(second_, 2);
    make_ready(first_);
    make_ready(second_);
    poller_.run_once(milliseconds(0));
    poller_.run_once(milliseconds(0));
    EXPECT_EQ(calls_, (std::vector<int>{1}));
}

TEST_F(DispatchingPollerTest, AddingABadDescriptorFailsWithItsNumber) {
    const Status status = poller_.add(1 << 20, EPOLLIN, [](std::uint32_t) {});
    EXPECT_EQ(status.code(), Code::system);
    EXPECT_NE(status.message().find("1048576"), std::string::npos);
}

}  // namespace
}  // namespace npushmem::run
