// SPDX-License-Identifier: BSD-3-Clause
// A test transport with the NICs that NPUSHMEM_NICS_NAMES lists. It reaches no PE; tests check which NICs it is asked
// to use. NPUSHMEM_NICS_GONE names a NIC that is down when it is used.
#include <cstring>

#include "core/base/parse.hpp"
#include "npushmem/plugin/transport_export.hpp"

namespace npushmem {
namespace {

class NicsTransport final : public Transport {
public:
    static Result<std::unique_ptr<Transport>> open(const Host& host, const npushmem_transport_params& params) {
        return std::unique_ptr<Transport>(
            std::make_unique<NicsTransport>(host.config("NICS_NAMES"), params.pe == 0 ? "" : host.config("NICS_GONE")));
    }
    NicsTransport(const std::string& names, std::string gone) : names_(split(names, ',')), gone_(std::move(gone)) {}

    Result<std::vector<npushmem_device>> devices() override {
        std::vector<npushmem_device> out;
        for (const auto& name : names_) {
            npushmem_device device{};
            device.struct_size = sizeof device;
            device.port = 1;
            device.state = name == gone_ ? NPUSHMEM_PORT_DOWN : NPUSHMEM_PORT_ACTIVE;
            device.bits_per_second = 200'000'000'000;
            std::memcpy(device.name, name.data(), std::min(name.size(), sizeof device.name));
            out.push_back(device);
        }
        return out;
    }
    Reach reach(const npushmem_peer&) override { return {0, 0, 0, "this transport reaches nobody"}; }
    Result<RegisteredMemory> register_memory(const npushmem_memory&) override { return RegisteredMemory{1, {}}; }
    Code deregister_memory(std::uint64_t) override { return Code::ok; }
    Result<std::uint64_t> import_memory(int, std::span<const std::byte>) override { return std::uint64_t{1}; }
    Code release_memory(std::uint64_t) override { return Code::ok; }
    Result<std::uint64_t> create_queue() override { return std::uint64_t{1}; }
    Code destroy_queue(std::uint64_t) override { return Code::ok; }
    Code fence(std::uint64_t) override { return Code::ok; }
    Code quiet(std::uint64_t) override { return Code::ok; }

private:
    std::vector<std::string> names_;
    std::string gone_;
};

constexpr npushmem_config_row rows[] = {
    {"NICS_NAMES", "", "string", "names of the NICs that this transport has"},
    {"NICS_GONE", "", "string", "one of them that is down for all PEs but 0"},
};

}  // namespace
}  // namespace npushmem

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::NicsTransport, "nics", "has NICs and reaches nobody",
                                      NPUSHMEM_CAP_DEVICES | NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET, npushmem::rows, 2);
