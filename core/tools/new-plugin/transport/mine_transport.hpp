// SPDX-License-Identifier: BSD-3-Clause
// Transport mine: messages over Unix sockets between the PEs of one host.
#pragma once

#include <memory>
#include <span>

#include "mine_connections.hpp"
#include "npushmem/plugin/slot_table.hpp"
#include "npushmem/plugin/transport.hpp"

namespace mine_plugin {

// A peer's memory.
struct Import {
    int pe = -1;
    std::uint64_t region = 0;
    std::uint64_t bytes = 0;
};

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

    npushmem::Result<npushmem::Bytes> address() override { return connections_.address().encode(); }
    npushmem::Reach reach(const npushmem_peer& peer) override;
    npushmem::Status connect(const npushmem_peer& peer) override { return connections_.connect(peer); }
    npushmem::Code forget(int pe) override { return connections_.forget(pe); }

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
    npushmem::Code progress() override { return connections_.progress(0) ? Code::ok : Code::again; }
    npushmem::Code poll_event(npushmem_event& out) override { return events_.poll(out); }

private:
    MineTransport(const npushmem::Host& host, const npushmem_transport_params& params, Requester::Limits limits,
                  SocketWire wire)
        : params_(params), events_(host), connections_(std::move(wire), params, limits, regions_, events_) {}

    const npushmem_transport_params params_;
    Events events_;
    Regions regions_;
    npushmem::SlotTable<Import> imports_;
    npushmem::SlotTable<std::shared_ptr<Queue>> queues_;
    Connections connections_;  // last: its thread uses the members before
};

}  // namespace mine_plugin
