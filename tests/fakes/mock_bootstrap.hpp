// A bootstrap whose calls a test expects one by one. Without expectations it is a job of one rank that gathers its own
// bytes; use fake_bootstrap.hpp for several ranks.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

class MockBootstrap : public Bootstrap {
public:
    MockBootstrap() {
        using ::testing::_;
        using ::testing::Return;
        ON_CALL(*this, rank).WillByDefault(Return(0));
        ON_CALL(*this, nranks).WillByDefault(Return(1));
        ON_CALL(*this, allgather(_, _))
            .WillByDefault([](std::span<const std::byte> send, std::span<std::byte> receive) {
                std::copy(send.begin(), send.end(), receive.begin());
                return Status{};
            });
        ON_CALL(*this, barrier).WillByDefault([] { return Status{}; });
        ON_CALL(*this, check).WillByDefault([] { return Status{}; });
    }

    MOCK_METHOD(int, rank, (), (const, override));
    MOCK_METHOD(int, nranks, (), (const, override));
    MOCK_METHOD(Status, allgather, (std::span<const std::byte>, std::span<std::byte>), (override));
    MOCK_METHOD(Status, barrier, (), (override));
    MOCK_METHOD(void, abort, (const std::string&), (override));
    MOCK_METHOD(Status, check, (), (override));
};

}  // namespace npushmem
