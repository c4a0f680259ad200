// SPDX-License-Identifier: BSD-3-Clause
// PE 0 of three: the waits for its emulated NPU's operations, and their transport.
#pragma once

#include <gmock/gmock.h>

#include <array>

#include "core/remote/npu_remote.hpp"
#include "tests/fakes/thread_remote_wait.hpp"
#include "tests/unit/core/remote/remote_access_fixture.hpp"

namespace npushmem {

// PE 1 is remote 101, PE 2 is 102; queues have the numbers 1, 2, ... in the order in which they are made.
class NpuWaitsFixture : public RemoteAccessFixture {
protected:
    NpuWaitsFixture() : RemoteAccessFixture(3) {}

    void SetUp() override {
        build_map({everything, all_atomics, all_atomics, "mock"});
        expect_life();
    }
    // Expects the calls besides the operations.
    void expect_life() {
        using ::testing::_;
        using ::testing::AnyNumber;
        using ::testing::Return;
        EXPECT_CALL(transport, poll_event(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::again));
        EXPECT_CALL(transport, progress()).Times(AnyNumber()).WillRepeatedly(Return(Code::again));
        EXPECT_CALL(transport, connect(_)).Times(AnyNumber()).WillRepeatedly(Return(Status{}));
        EXPECT_CALL(transport, import_memory(_, _)).Times(AnyNumber()).WillRepeatedly([](int pe, auto) {
            return static_cast<std::uint64_t>(100 + pe);
        });
        EXPECT_CALL(transport, create_queue()).Times(AnyNumber()).WillRepeatedly([this] { return ++made_; });
        EXPECT_CALL(transport, destroy_queue(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        EXPECT_CALL(transport, release_memory(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        EXPECT_CALL(transport, quiet(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
    }

    SliceAddressing places() {
        return {[this](const void* address) {
                    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(slice.data());
                },
                [](std::uint64_t offset) { return sizeof slice - offset; }};
    }

    std::array<std::uint64_t, 64> slice{};

private:
    std::uint64_t made_ = 0;
};

}  // namespace npushmem
