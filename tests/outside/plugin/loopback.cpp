// SPDX-License-Identifier: BSD-3-Clause
// The smallest useful transport: it reaches the own PE, by memcpy, and nothing else.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <npushmem/plugin/transport_export.hpp>

namespace {

using npushmem::Code;
using npushmem::Result;
using npushmem::Status;

class Loopback final : public npushmem::Transport {
public:
    static Result<std::unique_ptr<npushmem::Transport>> open(const npushmem::Host& host,
                                                             const npushmem_transport_params& params) {
        host.log(npushmem::LogLevel::debug, "opened");
        return std::unique_ptr<npushmem::Transport>(new Loopback(params.pe));
    }

    npushmem::Reach reach(const npushmem_peer& peer) override {
        if (peer.pe != pe_) return {0, 0, 0, "loopback reaches the PE itself only"};
        return {NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET, 0, 0, "the PE itself, by copying"};
    }

    Result<npushmem::RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        npushmem::RegisteredMemory made{1, npushmem::Bytes(sizeof memory.base)};
        std::memcpy(made.handle.data(), &memory.base, sizeof memory.base);
        return made;
    }
    Code deregister_memory(std::uint64_t) override { return Code::ok; }
    Result<std::uint64_t> import_memory(int, std::span<const std::byte> handle) override {
        if (handle.size() != sizeof base_) return Status{Code::protocol, "the handle is not one of loopback's"};
        std::memcpy(&base_, handle.data(), sizeof base_);
        return std::uint64_t{1};
    }
    Code release_memory(std::uint64_t) override { return Code::ok; }

    Result<std::uint64_t> create_queue() override { return std::uint64_t{1}; }
    Code destroy_queue(std::uint64_t) override { return Code::ok; }
    Code put(std::uint64_t, const npushmem_rma& op, std::uint64_t* token) override {
        std::memcpy(base_ + op.offset, op.local, op.bytes);
        return done(token);
    }
    Code get(std::uint64_t, const npushmem_rma& op, std::uint64_t* token) override {
        std::memcpy(op.local, base_ + op.offset, op.bytes);
        return done(token);
    }
    Code fence(std::uint64_t) override { return Code::ok; }
    Code quiet(std::uint64_t) override { return Code::ok; }

private:
    explicit Loopback(int pe) : pe_(pe) {}

    static Code done(std::uint64_t* token) {
        if (token != nullptr) *token = 0;
        return Code::ok;
    }

    int pe_;
    std::byte* base_ = nullptr;
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT(Loopback, "loopback", "the own PE, by copying", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET);
