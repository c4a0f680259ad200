// SPDX-License-Identifier: BSD-3-Clause
// As kept_transport.c, in C++ by the class and the export macro.
#include <cstring>

#include "npushmem/plugin/transport_export.hpp"

namespace {

using npushmem::Code;
using npushmem::Result;
using npushmem::Status;

class KeptTransport final : public npushmem::Transport {
public:
    static Result<std::unique_ptr<npushmem::Transport>> open(const npushmem::Host& host,
                                                             const npushmem_transport_params& params) {
        host.log(npushmem::LogLevel::debug, host.config("KEPT_WORD"));
        return std::unique_ptr<npushmem::Transport>(std::make_unique<KeptTransport>(params.pe));
    }
    explicit KeptTransport(int pe) : pe_(pe) {}

    npushmem::Reach reach(const npushmem_peer& peer) override {
        npushmem::Reach out;
        out.capabilities = peer.pe == pe_ ? NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET : 0;
        out.why = peer.pe == pe_ ? "the PE itself" : "another PE";
#if NPUSHMEM_TRANSPORT_MINOR >= 1
        out.latency_ns = 1500;
        out.bytes_per_second = 8'000'000'000;
#endif
        return out;
    }
    Result<std::vector<npushmem_device>> devices() override {
        npushmem_device device{};
        device.struct_size = sizeof device;
        device.port = 2;
        device.state = NPUSHMEM_PORT_ACTIVE;
        device.bits_per_second = 64'000'000'000;
        std::memcpy(device.name, "kept_0", sizeof "kept_0");
#if NPUSHMEM_TRANSPORT_MINOR >= 1
        device.rail = 4;
#endif
        return std::vector<npushmem_device>{device};
    }
    Status use_devices(std::span<const std::uint32_t> index) override {
        if (index.empty() || index.front() == 0) return {};
        return {Code::argument, "no such device"};
    }
    Result<npushmem::RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        memory_ = {static_cast<std::byte*>(memory.base), memory.bytes};
        return npushmem::RegisteredMemory{5, npushmem::Bytes(4, std::byte{'k'})};
    }
    Code deregister_memory(std::uint64_t region) override { return region == 5 ? Code::ok : Code::argument; }
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override {
        if (pe != pe_ || handle.size() != 4 || handle[0] != std::byte{'k'})
            return Status{Code::protocol, "not a handle of this transport"};
        return std::uint64_t{6};
    }
    Code release_memory(std::uint64_t remote) override { return remote == 6 ? Code::ok : Code::argument; }
    Result<std::uint64_t> create_queue() override { return 100 + ++queues_; }
    Code destroy_queue(std::uint64_t queue) override { return check_queue(queue); }
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        if (const Code refused = check(queue, op); refused != Code::ok) return refused;
        std::memcpy(memory_.data() + op.offset, op.local, op.bytes);
        if (token != nullptr) *token = 77;
        return Code::ok;
    }
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        if (const Code refused = check(queue, op); refused != Code::ok) return refused;
        std::memcpy(op.local, memory_.data() + op.offset, op.bytes);
        if (token != nullptr) *token = 77;
        return Code::ok;
    }
    Code fence(std::uint64_t queue) override { return check_queue(queue); }
    Code quiet(std::uint64_t queue) override { return check_queue(queue); }
    Code test(std::uint64_t queue, std::uint64_t token) override {
        return token == 77 ? check_queue(queue) : Code::argument;
    }
    Code poll_event(npushmem_event& out) override {
        out.code = NPUSHMEM_E_TIMEOUT;
        out.pe = 2;
        std::memcpy(out.message, "an event", sizeof "an event");
        return Code::ok;
    }
#if NPUSHMEM_TRANSPORT_MINOR >= 1
    Code forget(int pe) override { return pe == 7 ? Code::argument : Code::ok; }
#endif
#if NPUSHMEM_TRANSPORT_MINOR >= 2
    Code report_arrivals(void (*arrived)(void* context), void* context) override {
        arrived(context);
        return Code::ok;
    }
#endif

private:
    [[nodiscard]] Code check_queue(std::uint64_t queue) const {
        return queue > 100 && queue <= 100 + queues_ ? Code::ok : Code::argument;
    }
    [[nodiscard]] Code check(std::uint64_t queue, const npushmem_rma& op) const {
        if (op.remote != 6) return Code::argument;
        if (op.offset > memory_.size() || op.bytes > memory_.size() - op.offset) return Code::range;
        return check_queue(queue);
    }

    int pe_;
    std::span<std::byte> memory_;
    std::uint64_t queues_ = 0;
};

constexpr npushmem_config_row rows[] = {{"KEPT_WORD", "kept", "string", "a word"}};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(KeptTransport, PLUGIN_NAME, "a plugin of an earlier version",
                                      NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_DEVICES, rows, 1);
