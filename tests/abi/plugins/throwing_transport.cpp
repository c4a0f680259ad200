// SPDX-License-Identifier: BSD-3-Clause
// A C++ plugin whose functions throw: the export macro's trampolines must turn that into codes.
#include <stdexcept>

#include "npushmem/plugin/transport_export.hpp"

namespace {

using npushmem::Code;

class ThrowingTransport final : public npushmem::Transport {
public:
    static npushmem::Result<std::unique_ptr<npushmem::Transport>> open(const npushmem::Host& host,
                                                                       const npushmem_transport_params&) {
        if (host.config("THROWING_OPEN") == "true") throw std::runtime_error("open of the throwing plugin threw");
        return std::unique_ptr<npushmem::Transport>(std::make_unique<ThrowingTransport>());
    }
    npushmem::Reach reach(const npushmem_peer&) override { throw std::runtime_error("reach"); }
    npushmem::Result<npushmem::RegisteredMemory> register_memory(const npushmem_memory&) override { throw 42; }
    Code deregister_memory(std::uint64_t) override { throw std::bad_alloc(); }
    npushmem::Result<std::uint64_t> import_memory(int, std::span<const std::byte>) override { throw std::bad_alloc(); }
    Code release_memory(std::uint64_t) override { throw 42; }
    npushmem::Result<std::uint64_t> create_queue() override { throw std::runtime_error("no queue today"); }
    Code destroy_queue(std::uint64_t) override { throw 42; }
    Code put(std::uint64_t, const npushmem_rma&, std::uint64_t*) override { throw 42; }
    Code fence(std::uint64_t) override { throw 42; }
    Code quiet(std::uint64_t) override { throw 42; }
    Code get(std::uint64_t, const npushmem_rma&, std::uint64_t*) override {
        throw std::runtime_error("the wire broke");
    }
    Code forget(int) override { throw std::bad_alloc(); }
};

constexpr npushmem_config_row rows[] = {{"THROWING_OPEN", "false", "bool", "throw in open"}};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(ThrowingTransport, "throwing", "throws", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET,
                                      rows, 1);
