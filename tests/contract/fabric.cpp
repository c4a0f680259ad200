// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/fabric.hpp"

#include <unistd.h>

#include <algorithm>

namespace npushmem::contract {

Subject::Subject(TransportSubject tested, Layout memory_layout)
    : transport(std::move(tested)), layout(memory_layout), host(std::make_shared<fakes::FakeHost>()) {
    for (const auto& [name, value] : transport.config) host->set(name, value);
}

std::string Subject::suite() const {
    return transport.name + (layout == Layout::one_file ? "/one_file" : "/own_files");
}

Result<std::unique_ptr<Transport>> Subject::open(const npushmem_transport_params& params) const {
    auto opened = transport.open(host->table(), params);
    if (opened.ok() && opened.value() == nullptr)
        return Status{Code::state, "open of the transport returned no instance, and no failure"};
    return opened;
}

Result<std::unique_ptr<Transport>> Subject::open_with_devices(const npushmem_transport_params& params) const {
    auto opened = open(params);
    if (!opened.ok() || transport.devices == 0) return opened;
    const auto offered = opened.value()->devices();
    if (!offered.ok()) return offered.status().within("devices");
    std::vector<std::uint32_t> used;
    const auto count = static_cast<std::uint32_t>(offered.value().size());
    for (std::uint32_t i = 0; i < std::min(transport.devices, count); ++i)
        used.push_back((static_cast<std::uint32_t>(params.pe) + i) % count);
    if (Status assigned = opened.value()->use_devices(used); !assigned.ok()) return assigned.within("use_devices");
    return opened;
}

npushmem_host_id this_host() {
    npushmem_host_id out{};
    out.machine = 0x6d616368696e6531;
    out.space = 0x7370616365303031;
    out.emulated = -1;
    out.user = ::geteuid();
    return out;
}

npushmem_transport_params params_of(int pe, int npes) {
    npushmem_transport_params out{};
    out.struct_size = sizeof out;
    out.pe = pe;
    out.npes = npes;
    out.local_index = pe;
    out.local_count = npes;
    out.process_id = ::getpid();
    out.host = this_host();
    return out;
}

npushmem_peer peer_of(int pe) {
    npushmem_peer out{};
    out.struct_size = sizeof out;
    out.pe = pe;
    out.host = this_host();
    out.process_id = ::getpid();
    out.host_name = "localhost";
    return out;
}

std::vector<std::unique_ptr<Slice>> make_slices(Layout layout, int npes, std::uint64_t bytes) {
    std::vector<std::unique_ptr<Slice>> out;
    const auto count = static_cast<std::uint64_t>(npes);
    const auto common = layout == Layout::one_file ? std::make_shared<const SharedFile>(bytes * count) : nullptr;
    for (std::uint64_t i = 0; i < count; ++i)
        out.push_back(common ? std::make_unique<Slice>(common, i * bytes, bytes)
                             : std::make_unique<Slice>(std::make_shared<const SharedFile>(bytes), 0, bytes));
    return out;
}

Result<std::unique_ptr<Fabric>> Fabric::make(const Subject& subject, int npes) {
    std::unique_ptr<Fabric> out(new Fabric(subject));
    if (Status s = out->open(npes); !s.ok()) return s;
    if (Status s = out->connect_all(); !s.ok()) return s;
    return out;
}

Status Fabric::open(int npes) {
    auto slices = make_slices(subject_.layout, npes, pe_bytes);
    for (int pe = 0; pe < npes; ++pe) {
        auto opened = subject_.open_with_devices(params_of(pe, npes));
        if (!opened.ok()) return opened.status();
        pes_.push_back(
            std::make_unique<Pe>(pe, std::move(opened).value(), std::move(slices[static_cast<std::size_t>(pe)])));
        pes_.back()->set_wait_hook([this] { progress_all(); });
    }
    return {};
}

Status Fabric::connect_all() {
    std::vector<Pe::ConnectInfo> infos;
    for (auto& pe : pes_) {
        auto info = pe->publish();
        if (!info.ok()) return info.status();
        infos.push_back(std::move(info).value());
    }
    for (auto& from : pes_)
        for (int to = 0; to < npes(); ++to)
            if (Status s = from->connect(peer_of(to), infos[static_cast<std::size_t>(to)]); !s.ok()) return s;
    return {};
}

void Fabric::progress_all() {
    for (auto& pe : pes_) (void)pe->transport().progress();
}

std::vector<std::pair<int, int>> Fabric::pairs_with(std::uint64_t capabilities) const {
    std::vector<std::pair<int, int>> out;
    for (int from = 0; from < npes(); ++from)
        for (int to = 0; to < npes(); ++to)
            if (pe(from).reach(to).has(capabilities)) out.emplace_back(from, to);
    return out;
}

}  // namespace npushmem::contract
