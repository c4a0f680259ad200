// The wrapped transport as bad as the contract allows it to be: late, out of order, full, and failing on request. A
// program that works over it does not rest on what a faster transport happens to do.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "npushmem/plugin/decorator_transport.hpp"
#include "transports/fault/fault_settings.hpp"
#include "transports/fault/held_queue.hpp"

namespace npushmem {

// Hides that memory can be mapped, because loads and stores could not be delayed, and that puts arrive in order.
// One lock over everything: correctness matters here, speed does not. With one thread per PE the same seed gives the
// same run.
class FaultTransport final : public DecoratorTransport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    FaultTransport(const Host& host, const npushmem_transport_params& params, fault::Settings settings);

    Reach reach(const npushmem_peer& peer) override;
    Status connect(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Result<std::uint64_t> create_queue() override;
    // Drops what is still held: the contract allows it.
    Code destroy_queue(std::uint64_t queue) override;
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override;
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override;
    Code fence(std::uint64_t queue) override;
    Code quiet(std::uint64_t queue) override;
    Code test(std::uint64_t queue, std::uint64_t token) override;
    Code progress() override;

private:
    // Counts a call of `function`; the code with which it was told to fail, or ok.
    Code injected_failure(fault::Function function);
    Status injected_setup_failure(fault::Function function);
    Code hold(std::uint64_t queue, fault::Function function, const PostedOperation& posted, std::uint64_t* token);
    fault::HeldQueue* find(std::uint64_t queue);
    bool one_in(std::uint32_t times) { return random_() % times == 0; }

    Host host_;
    fault::Settings settings_;
    std::mutex mutex_;  // everything below, and the order of calls into the inner transport
    fault::Random random_;
    std::array<std::uint64_t, fault::function_count> calls_{};
    std::map<std::uint64_t, fault::HeldQueue> queues_;
};

}  // namespace npushmem
