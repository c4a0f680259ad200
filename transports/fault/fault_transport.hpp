// SPDX-License-Identifier: BSD-3-Clause
// The fault decorator: it makes the wrapped transport as bad as the contract allows: late, out of order, full, and
// failing on request. A program that works over it does not rely on the behaviour of a faster transport.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/decorator_transport.hpp"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"
#include "transports/fault/held_queue.hpp"

namespace npushmem::fault {

// Functions for which a failure can be requested.
enum class Function : std::size_t {
    connect,
    register_memory,
    import_memory,
    create_queue,
    put,
    get,
    atomic,
    put_signal,
    put_strided,
    fence,
    quiet
};
constexpr std::size_t function_count = 11;
std::string_view name_of(Function function);

// "put:3:timeout": the third call of put fails with Code::timeout.
struct FailRule {
    Function function;
    std::uint64_t call;  // counted from 1
    Code code;
};

struct Settings {
    std::uint64_t seed = 1;
    std::uint32_t delay = 4;          // an operation is held for 0 to this many steps, at random
    bool reorder = true;              // carry out unordered operations in random order
    std::uint32_t again_percent = 0;  // percentage of calls that return Code::again
    std::vector<FailRule> fail;
};

// Errors name the variable, the value and the accepted values.
Result<Settings> read_settings(const Host& host);
Result<std::vector<FailRule>> parse_fail_rules(std::string_view text);

}  // namespace npushmem::fault

namespace npushmem {

// Does not offer mapped memory, because loads and stores cannot be delayed, and does not promise ordered puts. One lock
// protects everything, since correctness matters here and speed does not. With one thread per PE the same seed gives
// the same run. One class, although it has more than twenty methods: most of them override one call of the transport
// interface, and all share the lock, the held operations and the random numbers.
class FaultTransport final : public DecoratorTransport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    FaultTransport(const Host& host, const npushmem_transport_params& params, fault::Settings settings);

    Reach reach(const npushmem_peer& peer) override;
    Status connect(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Result<std::uint64_t> create_queue() override;
    // Drops the operations that are still held. The contract allows this.
    Code destroy_queue(std::uint64_t queue) override;
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override;
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override;
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) override;
    Code fence(std::uint64_t queue) override;
    Code quiet(std::uint64_t queue) override;
    Code test(std::uint64_t queue, std::uint64_t token) override;
    Code progress() override;
    // Held operations are carried out at calls of the host.
    Code report_arrivals(void (* /*arrived*/)(void* context), void* /*context*/) override { return Code::unsupported; }

private:
    // Counts a call of `function`. Returns the code of the matching FailRule, or ok.
    Code injected_failure(fault::Function function);
    Status injected_setup_failure(fault::Function function);
    Code hold(std::uint64_t queue, fault::Function function, const PostedOperation& posted, std::uint64_t* token);
    fault::HeldQueue* find(std::uint64_t queue);
    bool one_in(std::uint32_t times) { return random_() % times == 0; }

    Host host_;
    fault::Settings settings_;
    std::mutex mutex_;  // protects the members below and the order of calls into the inner transport
    fault::Random random_;
    std::array<std::uint64_t, fault::function_count> calls_{};
    std::map<std::uint64_t, fault::HeldQueue> queues_;
};

}  // namespace npushmem
