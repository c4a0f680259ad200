// The emulated fabric between the NPUs of one server. Loads and stores use mapped memory. Posted operations go to the
// PE's DMA engines; a progress thread of the PE and any waiting caller drive them.
//
// When links are timed, or a link is set to fail, no peer's memory is mapped and every access uses the engines. All PEs
// decide this alike, because they choose algorithms by it.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "transports/hccs/engines.hpp"
#include "transports/hccs/links.hpp"
#include "transports/shared/progress_thread.hpp"
#include "transports/shared/shared_memory_transport.hpp"

namespace npushmem {

class HccsTransport final : public Transport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    HccsTransport(const Host& host, const npushmem_transport_params& params, std::unique_ptr<Transport> memory,
                  hccs::Settings settings, hccs::WakeTimer wake_timer);

    // The NPU that this PE drives: the PE's index on its host.
    Result<Bytes> address() override;
    Reach reach(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        return memory_->register_memory(memory);
    }
    Code deregister_memory(std::uint64_t region) override { return memory_->deregister_memory(region); }
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Code release_memory(std::uint64_t remote) override;
    Result<void*> map(std::uint64_t remote) override;

    Result<std::uint64_t> create_queue() override;
    Code destroy_queue(std::uint64_t queue) override;
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override;
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override;
    Code fence(std::uint64_t queue) override { return engines_.fence(queue); }
    Code quiet(std::uint64_t queue) override;
    Code test(std::uint64_t queue, std::uint64_t token) override;
    Code progress() override;
    Code poll_event(npushmem_event& out) override;

private:
    struct Peer {
        hccs::Path path;
        std::uint64_t transfers = 0;            // of this PE over the link; guarded by the engines' lock
        std::uint64_t fails_after = unlimited;  // transfers
        bool mapped = true;
    };
    static constexpr std::uint64_t unlimited = ~std::uint64_t{0};

    [[nodiscard]] Result<int> npu_of(const npushmem_peer& peer) const;
    [[nodiscard]] std::uint64_t limit_of(const hccs::Path& path) const;
    [[nodiscard]] bool has_deferred_link_failure() const;
    Code post(std::uint64_t queue, const PostedOperation& operation, std::uint64_t* token);
    hccs::Engines::Work work();
    hccs::Engines::Start begin(const PostedOperation& operation, hccs::Nanoseconds now);
    void report_link_failure(int pe, const Peer& peer, const PostedOperation& operation);
    bool run();
    void start_thread();
    int drive_for_thread();

    Host host_;
    int my_pe_;
    int npu_;
    hccs::Settings settings_;
    std::unique_ptr<Transport> memory_;
    std::vector<Peer> peers_;           // by PE; filled by reach
    std::set<std::uint64_t> unmapped_;  // imported memory that may not be mapped
    hccs::LinkClock clock_;             // guarded by the engines' lock
    std::mutex events_lock_;
    std::deque<npushmem_event> events_;
    hccs::WakeTimer wake_timer_;
    hccs::Engines engines_;
    std::atomic<std::uint64_t> driven_{0};  // runs by other threads; relaxed: a statistic
    std::once_flag thread_started_;
    std::unique_ptr<ProgressThread> thread_;  // last member: stops first
};

}  // namespace npushmem
