// SPDX-License-Identifier: BSD-3-Clause
// libibverbs as a wire: a reliable queue pair per peer and lane, created and connected at first use
// (connection_manager.hpp).
//
// Memory: a PE publishes, at start, its memory regions and their chunk size. A PE that needs the key of a chunk
// requests it over the connection. Other memory of the program is copied through buffers when the transfer is small.
// Otherwise it is registered: for the transfer, or for as long as a watch can report that the program releases it.
//
// One queue pair carries the writes, atomics and messages of a lane to a peer in the order of posting, and an
// acknowledgement proves that a write has arrived. So fences are free.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/multi_rail_wire.hpp"
#include "transports/network/wire.hpp"
#include "transports/verbs/interface.hpp"
#include "transports/verbs/ports.hpp"

namespace npushmem::verbs {

struct LocalPe {
    int pe = 0;
    int npes = 1;
    int local_index = 0;              // index of the PE on its host: the default choice of its port
    std::vector<GidRange> subnets{};  // subnets of the host's interfaces
};

// Opens a port, describes it to peers, and carries out the calls of a wire by the objects of the port's Interface. It
// is one class because it implements the 21 functions of Wire that a queue-pair network has. Call `address` or
// `add_peer`, which open the port, before operations, keys and readiness.
class VerbsWire final : public network::Wire {
public:
    // The error says what the machine lacks. Opens no port.
    static Result<std::unique_ptr<VerbsWire>> open(
        Library library, const VerbsSettings& settings, const LocalPe& local_pe,
        Clock now = [] { return std::chrono::steady_clock::now(); });

    [[nodiscard]] const std::vector<npushmem_device>& ports() const { return ports_.all(); }
    // Checks that an active port can be opened with the user's settings and limits. Leaves nothing open.
    Status check_usable();
    // Call this and the next two functions before `address`.
    Status use_port(std::size_t index);
    // With a watch, registrations of the program's memory are cached.
    void use_watch(std::shared_ptr<MemoryWatch> watch) { watch_ = std::move(watch); }
    // Shares the registration caches of the PE's other ports; not null.
    void use_caches(std::shared_ptr<RegistrationCaches> caches) { caches_ = std::move(caches); }

    // Opens the port.
    Result<Bytes> address() override;
    [[nodiscard]] network::Port port() const override;
    [[nodiscard]] Result<network::Port> port_of(std::span<const std::byte> address) const override;
    // A peer may have several ports. This PE's port is connected to the one with which it is paired.
    Result<std::string> route_to(int pe, std::span<const std::byte> address) override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override { interface_->memory.remove(number); }
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override { interface_->keys.release(key); }
    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override;
    Code atomic(const network::RemoteAddress& at, const npushmem_atomic& op, network::WireContext& context) override;
    Code write_signal(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
                      const network::RemoteAddress& at, std::uint64_t signal, network::WireContext& context) override;
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] bool has_unsent_messages() const override { return interface_ && interface_->poster.has_requests(); }
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    void forget(int pe) override;
    void close(network::LaneId lane_id) override;
    bool progress(network::WireListener& listener) override { return interface_ && interface_->progress(listener); }
    [[nodiscard]] int descriptor() const override { return interface_ ? interface_->descriptor.get() : -1; }
    bool prepare_to_wait(network::WakeEvents what) override { return !interface_ || interface_->prepare_to_wait(what); }
    network::Readiness readiness(network::LaneId lane_id) override {
        return interface_ ? interface_->manager.readiness(lane_id) : network::Readiness::unreachable;
    }

private:
    VerbsWire(Library library, const VerbsSettings& settings, const LocalPe& local_pe, PortSelection ports, Clock now);
    Status ensure_open();
    // On failure the interface may be left open in part.
    Status open_interface(const npushmem_device& which);
    Status find_traits();
    [[nodiscard]] PortAddress make_address(const PortResources& resources) const;
    [[nodiscard]] Result<network::PortPair> pair_with(const network::PeerPorts& peer) const;
    Code transfer(const Transfers::Operation& operation);
    // Code::again when the write is not a single request that can be posted now.
    Code try_inline_write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
                          network::WireContext& context);

    Library library_;
    VerbsSettings settings_;
    LocalPe local_pe_;
    Clock now_;
    PortSelection ports_;
    std::uint64_t nonce_;
    std::shared_ptr<MemoryWatch> watch_;
    std::shared_ptr<RegistrationCaches> caches_ = std::make_shared<RegistrationCaches>();
    std::string last_error_;
    std::optional<Interface> interface_;  // exists while the port is open: from `address` or `add_peer` on
};

}  // namespace npushmem::verbs
