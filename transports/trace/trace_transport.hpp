// SPDX-License-Identifier: BSD-3-Clause
// The trace decorator: it logs every call to the wrapped transport and a summary at the end.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "npushmem/plugin/decorator_transport.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::trace {

// Counts the calls of one function, their bytes, durations and results. Any number of threads may add; read it when
// they have stopped. All accesses are relaxed: the counters publish nothing, and the reader runs after the threads have
// ended.
class CallStats {
public:
    void add(Code code, std::uint64_t bytes, std::chrono::nanoseconds duration);

    [[nodiscard]] std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t again() const { return again_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

    // "put: 12 calls, 4 KiB, 1.2 us, 100 ns each, 3 times 'again', 1 failed"
    [[nodiscard]] std::string summary(std::string_view function) const;

private:
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::int64_t> nanoseconds_{0};
    std::atomic<std::uint64_t> again_{0};
    std::atomic<std::uint64_t> failed_{0};
};

}  // namespace npushmem::trace

namespace npushmem {

// Does not offer mapped memory, because loads and stores make no call. Logs `open` and `close` without durations: the
// host opens the wrapped transport before this one and closes it after. Logs `test`, `quiet` and `progress` only when
// they do not return Code::again, because a waiting caller repeats them. One class, although it has more than twenty
// methods: it overrides the whole transport interface, and each method logs one call.
class TraceTransport final : public DecoratorTransport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    TraceTransport(const Host& host, const npushmem_transport_params& params, bool each_call);
    ~TraceTransport() override;

    Result<std::vector<npushmem_device>> devices() override;
    Status use_devices(std::span<const std::uint32_t> index) override;
    Result<Bytes> address() override;
    Reach reach(const npushmem_peer& peer) override;
    Status connect(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    Code deregister_memory(std::uint64_t region) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Code release_memory(std::uint64_t remote) override;
    Result<std::uint64_t> create_queue() override;
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
    Code poll_event(npushmem_event& out) override;
    Code forget(int pe) override;

private:
    enum Function : std::size_t {
        devices_,
        use_devices_,
        address_,
        reach_,
        connect_,
        register_,
        deregister_,
        import_,
        release_,
        create_queue_,
        destroy_queue_,
        forget_,
        put_,
        get_,
        atomic_,
        put_signal_,
        put_strided_,
        fence_,
        quiet_,
        test_,
        progress_,
        poll_event_,
        function_count
    };
    static const char* name_of_function(Function function);

    // Runs `call`, counts it, and logs it with the arguments that `text` formats.
    template <class Call, class Text>
    auto traced(Function function, std::uint64_t bytes, Call&& call, Text&& text);
    void write(Function function, Code code, std::chrono::nanoseconds duration, const std::string& arguments) const;

    Host host_;
    int pe_;
    bool each_call_;
    std::array<trace::CallStats, function_count> stats_;
};

}  // namespace npushmem
