// SPDX-License-Identifier: BSD-3-Clause
// The emulated fabric between the NPUs of one server. Loads and stores use mapped memory. Posted operations go to the
// PE's DMA engines; a progress thread of the PE and any waiting caller drive them.
//
// When links are timed, or a link is set to fail, no peer's memory is mapped and every access uses the engines. All PEs
// decide this alike, because they choose algorithms by it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "transports/hccs/engines.hpp"
#include "transports/hccs/links.hpp"
#include "transports/hccs/peer_links.hpp"
#include "transports/shared/progress_thread.hpp"
#include "transports/shared/shared_memory_transport.hpp"
#include "transports/shared/wake_timer.hpp"

namespace npushmem {

// It is one class because the Transport interface has most of these functions, which are short. Its own job is to run
// the engines; PeerLinks decides about peers and links.
class HccsTransport final : public Transport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params);

    HccsTransport(const Host& host, const npushmem_transport_params& params, std::unique_ptr<Transport> memory,
                  const hccs::Settings& settings, WakeTimer wake_timer);

    Result<Bytes> address() override { return links_.address(); }
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
    Code poll_event(npushmem_event& out) override { return links_.poll_event(out); }

private:
    Code post(std::uint64_t queue, const PostedOperation& operation, std::uint64_t* token);
    hccs::Engines::Work work();
    bool run();
    void start_thread();
    int drive_for_thread();

    Host host_;
    std::unique_ptr<Transport> memory_;
    std::set<std::uint64_t> unmapped_;  // imported memory that may not be mapped
    hccs::PeerLinks links_;
    WakeTimer wake_timer_;
    hccs::Engines engines_;
    std::atomic<std::uint64_t> driven_{0};  // runs by other threads; relaxed: a statistic
    std::once_flag thread_started_;
    std::unique_ptr<ProgressThread> thread_;  // last member: stops first
};

}  // namespace npushmem
