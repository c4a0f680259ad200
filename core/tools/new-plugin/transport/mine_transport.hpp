// SPDX-License-Identifier: BSD-3-Clause
// Transport mine: messages over Unix sockets between the PEs of one host.
//
// Each instance has one thread, which waits for messages, executes the requests of peers and receives replies. So a PE
// serves its peers while it computes. Calls of the program that wait (progress, test, quiet) do the same work once,
// without waiting.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "mine_initiator.hpp"
#include "mine_target.hpp"
#include "mine_wire.hpp"
#include "npushmem/plugin/slot_table.hpp"
#include "npushmem/plugin/transport.hpp"

namespace mine_plugin {

class MineTransport final : public npushmem::Transport {
public:
    static constexpr std::uint64_t capabilities = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC |
                                                  NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_REPORTS_DEATH |
                                                  NPUSHMEM_CAP_TARGET_PROGRESS;
    static constexpr npushmem_config_row config_rows[] = {
        {"MINE_DEPTH", "256", "uint", "operations in flight to one peer, 1 to 65536"},
        {"MINE_PIECE", "65536", "uint", "bytes of one message, 64 to 131072; larger transfers are sent in pieces"},
    };

    static npushmem::Result<std::unique_ptr<npushmem::Transport>> open(const npushmem::Host& host,
                                                                       const npushmem_transport_params& params);
    ~MineTransport() override;

    npushmem::Result<npushmem::Bytes> address() override { return address_.encode(); }
    npushmem::Reach reach(const npushmem_peer& peer) override;
    npushmem::Status connect(const npushmem_peer& peer) override;

    npushmem::Result<npushmem::RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    npushmem::Code deregister_memory(std::uint64_t region) override;
    npushmem::Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    npushmem::Code release_memory(std::uint64_t remote) override;

    npushmem::Result<std::uint64_t> create_queue() override;
    npushmem::Code destroy_queue(std::uint64_t queue) override;
    npushmem::Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    npushmem::Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    npushmem::Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override;
    npushmem::Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override;
    npushmem::Code fence(std::uint64_t queue) override;
    npushmem::Code quiet(std::uint64_t queue) override;
    npushmem::Code test(std::uint64_t queue, std::uint64_t token) override;
    npushmem::Code progress() override;
    npushmem::Code poll_event(npushmem_event& out) override;

private:
    // A peer's memory.
    struct Import {
        int pe = -1;
        std::uint64_t region = 0;
        std::uint64_t bytes = 0;
    };

    MineTransport(const npushmem::Host& host, const npushmem_transport_params& params, Requester::Limits limits,
                  Poller poller)
        : host_(host),
          params_(params),
          limits_(limits),
          poller_(std::move(poller)),
          requester_of_(static_cast<std::size_t>(params.npes)) {}
    Status start();
    void run();
    bool run_once(int timeout_ms);
    void serve(std::uint64_t key);
    void accept_all();
    void serve_peer(std::uint64_t key, Responder& responder);
    void serve_replies(Requester& requester);
    void report_death(int pe);
    void report(Code code, int pe, const std::string& message);
    void say_goodbye();

    [[nodiscard]] Requester* requester_of(int pe) const;
    Code check(const npushmem_rma& op, Kind kind, Header& data);
    Code post(std::uint64_t queue, int pe, Operation operation, std::uint64_t* token);

    const npushmem::Host host_;
    const npushmem_transport_params params_;
    const Requester::Limits limits_;
    const Poller poller_;
    Address address_;
    Socket listener_;
    Socket wake_;  // an event descriptor: ends the thread's wait

    Regions regions_;
    npushmem::SlotTable<Import> imports_;
    npushmem::SlotTable<std::shared_ptr<Queue>> queues_;
    // By PE; written by `connect` while other threads read other entries.
    std::vector<std::atomic<Requester*>> requester_of_;
    std::vector<std::unique_ptr<Requester>> requesters_;  // owns them

    std::mutex progress_mutex_;  // held by the thread that serves connections; guards the members up to the next line
    std::map<std::uint64_t, Responder> responders_;  // by key
    std::uint64_t last_responder_ = 0;
    std::set<int> dead_;
    std::vector<std::byte> buffer_ = std::vector<std::byte>(receive_buffer_bytes);

    std::mutex events_mutex_;
    std::deque<npushmem_event> events_;
    std::atomic<bool> has_events_{false};  // spares poll_event the lock

    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace mine_plugin
