// A transport whose calls a test expects one by one. Without expectations it reaches nobody, accepts everything and
// does nothing; use fake_transport.hpp where data shall arrive.
#pragma once

#include <gmock/gmock.h>

#include "npushmem/plugin/transport.hpp"

namespace npushmem {

class MockTransport : public Transport {
public:
    static constexpr std::uint64_t region = 41;
    static constexpr std::uint64_t queue = 42;
    static constexpr std::uint64_t remote = 43;

    MockTransport() {
        using ::testing::_;
        using ::testing::Return;
        ON_CALL(*this, devices).WillByDefault([] { return std::vector<npushmem_device>{}; });
        ON_CALL(*this, use_devices(_)).WillByDefault([](auto) { return Status{}; });
        ON_CALL(*this, address).WillByDefault([] { return Bytes{}; });
        ON_CALL(*this, connect(_)).WillByDefault([](const npushmem_peer&) { return Status{}; });
        ON_CALL(*this, register_memory(_)).WillByDefault([](const npushmem_memory&) {
            return RegisteredMemory{region, Bytes(8)};
        });
        ON_CALL(*this, import_memory(_, _)).WillByDefault([](int, auto) { return remote; });
        ON_CALL(*this, map(_)).WillByDefault([](std::uint64_t) {
            return Status{Code::unsupported, "the mock maps nothing"};
        });
        ON_CALL(*this, create_queue).WillByDefault([] { return queue; });
        ON_CALL(*this, progress).WillByDefault(Return(Code::again));
        ON_CALL(*this, poll_event(_)).WillByDefault(Return(Code::again));
    }

    MOCK_METHOD(Result<std::vector<npushmem_device>>, devices, (), (override));
    MOCK_METHOD(Status, use_devices, (std::span<const std::uint32_t>), (override));
    MOCK_METHOD(Result<Bytes>, address, (), (override));
    MOCK_METHOD(Reach, reach, (const npushmem_peer&), (override));
    MOCK_METHOD(Status, connect, (const npushmem_peer&), (override));
    MOCK_METHOD(Result<RegisteredMemory>, register_memory, (const npushmem_memory&), (override));
    MOCK_METHOD(Code, deregister_memory, (std::uint64_t), (override));
    MOCK_METHOD(Result<std::uint64_t>, import_memory, (int, std::span<const std::byte>), (override));
    MOCK_METHOD(Code, release_memory, (std::uint64_t), (override));
    MOCK_METHOD(Result<void*>, map, (std::uint64_t), (override));
    MOCK_METHOD(Result<std::uint64_t>, create_queue, (), (override));
    MOCK_METHOD(Code, destroy_queue, (std::uint64_t), (override));
    MOCK_METHOD(Code, put, (std::uint64_t, const npushmem_rma&, std::uint64_t*), (override));
    MOCK_METHOD(Code, get, (std::uint64_t, const npushmem_rma&, std::uint64_t*), (override));
    MOCK_METHOD(Code, atomic, (std::uint64_t, const npushmem_atomic&, std::uint64_t*), (override));
    MOCK_METHOD(Code, put_signal, (std::uint64_t, const npushmem_put_signal&, std::uint64_t*), (override));
    MOCK_METHOD(Code, fence, (std::uint64_t), (override));
    MOCK_METHOD(Code, quiet, (std::uint64_t), (override));
    MOCK_METHOD(Code, test, (std::uint64_t, std::uint64_t), (override));
    MOCK_METHOD(Code, progress, (), (override));
    MOCK_METHOD(Code, poll_event, (npushmem_event&), (override));
};

}  // namespace npushmem
