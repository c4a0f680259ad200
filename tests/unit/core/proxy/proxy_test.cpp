// The proxy's thread: it sleeps, is woken, and ends whatever is under way.
#include "core/proxy/proxy.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/ops/remote_access_fixture.hpp"
#include "tests/unit/core/proxy/requests.hpp"

namespace npushmem::proxy {
namespace {

using ::testing::_;
using ::testing::AnyNumber;
using ::testing::DoAll;
using ::testing::Return;
using ::testing::SetArgPointee;

class ProxyThread : public RemoteAccessFixture {
protected:
    ProxyThread() : RemoteAccessFixture(2) {}

    void SetUp() override {
        build_map({everything, all_atomics, all_atomics, "mock"});
        EXPECT_CALL(transport, connect(_)).Times(AnyNumber()).WillRepeatedly(Return(Status{}));
        EXPECT_CALL(transport, import_memory(_, _)).Times(AnyNumber()).WillRepeatedly(Return(std::uint64_t{101}));
        EXPECT_CALL(transport, create_queue()).Times(AnyNumber()).WillRepeatedly(Return(std::uint64_t{1}));
        EXPECT_CALL(transport, destroy_queue(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        EXPECT_CALL(transport, release_memory(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        auto started = Proxy::start(*peers, WaitBudget{}, real_os);
        ASSERT_TRUE(started.ok()) << started.status().message();
        proxy = std::move(started).value();
    }
    void TearDown() override {
        proxy.reset();
        peers.reset();
    }
    void push(Request request) {
        while (!proxy->try_push(request)) std::this_thread::yield();
    }
    void await_answer(std::uint64_t number) const {
        while (!requester->answered(number)) std::this_thread::yield();
    }

    SystemWaitOs real_os;
    std::unique_ptr<Proxy> proxy;
    std::shared_ptr<RequesterState> requester = std::make_shared<RequesterState>();
    std::uint64_t value = 5;
};

// As it sleeps for seconds, what it is not woken for would be seen.
TEST_F(ProxyThread, SleepsWhenIdleAndIsWokenByEachRequest) {
    EXPECT_CALL(transport, put(1, _, _)).WillRepeatedly(Return(Code::ok));
    for (std::uint64_t number = 1; number <= 50; ++number) {
        const std::uint64_t slept = proxy->sleeps();
        push(put_of(requester, 1, 0, &value, 8, number));
        await_answer(number);
        EXPECT_TRUE(requester->answer().ok());
        if (number % 2 == 0) continue;  // while it looks for more, or falls asleep
        while (proxy->sleeps() == slept) std::this_thread::yield();
    }
}

TEST_F(ProxyThread, TellsThoseWhoWaitWhenItEnds) {
    EXPECT_CALL(transport, put(1, _, _)).WillRepeatedly(DoAll(SetArgPointee<2>(9), Return(Code::ok)));
    std::atomic<int> looks{0};
    EXPECT_CALL(transport, test(1, 9)).WillRepeatedly([&](std::uint64_t, std::uint64_t) {
        looks.fetch_add(1, std::memory_order_relaxed);
        return Code::again;
    });
    push(put_of(requester, 1, 0, &value, 8, 1));
    while (looks.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    const auto other = std::make_shared<RequesterState>();
    push(put_of(other, 1, 0, &value, 8, 1));
    proxy.reset();
    ASSERT_TRUE(requester->answered(1));
    EXPECT_EQ(requester->answer().code(), Code::aborted);
    ASSERT_TRUE(other->answered(1));
    EXPECT_EQ(other->answer().code(), Code::aborted);
}

}  // namespace
}  // namespace npushmem::proxy
