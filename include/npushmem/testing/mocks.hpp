// SPDX-License-Identifier: BSD-3-Clause
// A bootstrap whose calls a test expects one by one. Without expectations it is a job of one rank that gathers its own
// bytes; use fake_bootstrap.hpp for several ranks.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/transport.hpp"
#include "npushmem/plugin/transport_export.hpp"
#include "npushmem/testing/printers.hpp"

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

// A transport whose calls a test expects one by one. Without expectations it reaches no PE, accepts every call and does
// nothing; use fake_transport.hpp if data must arrive.

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

    // Without expectations all calls then go to this transport, for instance a FakeTransport.
    void delegate_to(std::unique_ptr<Transport> real) {
        real_ = std::move(real);
        const auto call = [to = real_.get()](auto method) {
            return [to, method](auto&&... arguments) {
                return (to->*method)(std::forward<decltype(arguments)>(arguments)...);
            };
        };
        ON_CALL(*this, devices).WillByDefault(call(&Transport::devices));
        ON_CALL(*this, use_devices).WillByDefault(call(&Transport::use_devices));
        ON_CALL(*this, address).WillByDefault(call(&Transport::address));
        ON_CALL(*this, reach).WillByDefault(call(&Transport::reach));
        ON_CALL(*this, connect).WillByDefault(call(&Transport::connect));
        ON_CALL(*this, register_memory).WillByDefault(call(&Transport::register_memory));
        ON_CALL(*this, deregister_memory).WillByDefault(call(&Transport::deregister_memory));
        ON_CALL(*this, import_memory).WillByDefault(call(&Transport::import_memory));
        ON_CALL(*this, release_memory).WillByDefault(call(&Transport::release_memory));
        ON_CALL(*this, map).WillByDefault(call(&Transport::map));
        ON_CALL(*this, create_queue).WillByDefault(call(&Transport::create_queue));
        ON_CALL(*this, destroy_queue).WillByDefault(call(&Transport::destroy_queue));
        ON_CALL(*this, put).WillByDefault(call(&Transport::put));
        ON_CALL(*this, get).WillByDefault(call(&Transport::get));
        ON_CALL(*this, atomic).WillByDefault(call(&Transport::atomic));
        ON_CALL(*this, put_signal).WillByDefault(call(&Transport::put_signal));
        ON_CALL(*this, put_strided).WillByDefault(call(&Transport::put_strided));
        ON_CALL(*this, fence).WillByDefault(call(&Transport::fence));
        ON_CALL(*this, quiet).WillByDefault(call(&Transport::quiet));
        ON_CALL(*this, test).WillByDefault(call(&Transport::test));
        ON_CALL(*this, progress).WillByDefault(call(&Transport::progress));
        ON_CALL(*this, poll_event).WillByDefault(call(&Transport::poll_event));
        ON_CALL(*this, forget).WillByDefault(call(&Transport::forget));
        ON_CALL(*this, report_arrivals).WillByDefault(call(&Transport::report_arrivals));
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
    MOCK_METHOD(Code, put_strided, (std::uint64_t, const npushmem_put_strided&, std::uint64_t*), (override));
    MOCK_METHOD(Code, fence, (std::uint64_t), (override));
    MOCK_METHOD(Code, quiet, (std::uint64_t), (override));
    MOCK_METHOD(Code, test, (std::uint64_t, std::uint64_t), (override));
    MOCK_METHOD(Code, progress, (), (override));
    MOCK_METHOD(Code, poll_event, (npushmem_event&), (override));
    MOCK_METHOD(Code, forget, (int), (override));
    MOCK_METHOD(Code, report_arrivals, (void (*)(void*), void*), (override));

private:
    std::unique_ptr<Transport> real_;
};

}  // namespace npushmem

namespace npushmem::fakes {

// Passes a Transport object to a decorator as a host does: as a function table.

// The test owns the object.
class InnerTable {
public:
    explicit InnerTable(Transport& inner) : inner_(inner) {
        detail::TransportTrampolines::fill(table_);
        table_.name = "inner";
        table_.summary = "";
        table_.capabilities = ~std::uint64_t{0};
        table_.close = [](void*) {};
    }
    [[nodiscard]] npushmem_transport_params params(int pe = 0) const {
        npushmem_transport_params out{};
        out.struct_size = sizeof out;
        out.pe = pe;
        out.npes = pe + 1;
        out.inner = &table_;
        out.inner_self = &inner_;
        return out;
    }

private:
    Transport& inner_;
    npushmem_transport_v1 table_{};
};

}  // namespace npushmem::fakes
