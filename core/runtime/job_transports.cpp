// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_transports.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <algorithm>

#include "core/base/hash.hpp"
#include "core/base/parse.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

namespace {

std::vector<std::string> names_in(std::string_view list) {
    std::vector<std::string> names;
    for (const std::string& part : split(list, ','))
        if (std::string name(trimmed(part)); !name.empty()) names.push_back(std::move(name));
    return names;
}

// Returns the first PE that answers no; -1: all answer yes.
Result<int> first_refusing_pe(Bootstrap& bootstrap, bool yes) {
    const auto answers = gather(bootstrap, static_cast<std::uint8_t>(yes ? 1 : 0));
    if (!answers.ok()) return answers.status();
    const auto no = std::find(answers.value().begin(), answers.value().end(), 0);
    return no == answers.value().end() ? -1 : static_cast<int>(no - answers.value().begin());
}

}  // namespace

Result<RemoteTransportChoice> choose_remote_transport(
    const Settings& settings, bool served, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open) {
    RemoteTransportChoice out;
    const bool wanted = lowercase(settings.remote_transport) == "auto" && !served;
    auto decided = first_refusing_pe(bootstrap, wanted);
    if (!decided.ok()) return decided.status();
    if (decided.value() >= 0) {
        if (wanted)
            out.explanation = fmt::format(
                "none: PE {} selected its own, so NPUSHMEM_REMOTE_TRANSPORT=auto chose nothing", decided.value());
        return out;
    }
    std::string tried;
    for (const std::string& name : names_in(settings.remote_order)) {
        auto opened = open(name);
        auto refused = first_refusing_pe(bootstrap, opened.ok());
        if (!refused.ok()) return refused.status();
        if (refused.value() < 0) {
            out.transport = std::move(opened).value();
            out.explanation =
                fmt::format("{} (NPUSHMEM_REMOTE_TRANSPORT=auto{}{})", name, tried.empty() ? "" : "; not ", tried);
            return out;
        }
        if (!tried.empty()) tried += "; not ";
        tried += opened.ok() ? fmt::format("{}: PE {} cannot open it", name, refused.value())
                             : fmt::format("{}: {}", name, opened.status().message());
    }
    out.explanation = fmt::format("none (NPUSHMEM_REMOTE_TRANSPORT=auto tried {})",
                                  tried.empty() ? "nothing: NPUSHMEM_REMOTE_ORDER is empty" : tried);
    return out;
}

RemoteModeChoice choose_remote_mode(std::string_view ibgda, bool other_hosts, const HostOccupancy& share) {
    if (!other_hosts)
        return {npu::RemoteMode::direct, "direct to PEs that are not mapped (their transports work within a host)"};
    const bool automatic = ibgda == "auto";
    const bool room = 2 * share.pes <= share.cores;
    const bool proxied = automatic ? room : ibgda == "0";
    const std::string why = automatic ? fmt::format("; auto: {} PEs with a proxy each {} {:g} CPUs", share.pes,
                                                    room ? "have room on" : "would share", share.cores)
                                      : std::string();
    const std::string by = fmt::format("(NPUSHMEM_IB_ENABLE_IBGDA={}{})", ibgda, why);
    if (proxied) return {npu::RemoteMode::proxy, "by a proxy thread to PEs that are not mapped " + by};
    return {npu::RemoteMode::direct, "direct to PEs that are not mapped, each core by itself " + by};
}

JobTransports::~JobTransports() {
    remote_.reset();
    remote_peers_.reset();
    for (std::size_t i = 0; i < regions_.size(); ++i) (void)named_[i].transport->deregister_memory(regions_[i]);
}

bool JobTransports::serves_other_hosts() const {
    return std::any_of(transports_.begin(), transports_.end(), [](const auto& one) { return one.remote; });
}

bool JobTransports::pins_memory() const {
    return std::any_of(transports_.begin(), transports_.end(), [](const auto& one) { return one.pins; });
}

Status JobTransports::complete_selection() {
    constexpr std::size_t max_transports = 64;  // one bit each in the map's set
    if (transports_.size() > max_transports)
        return {Code::config, fmt::format("{} transports were selected; at most {} are possible", transports_.size(),
                                          max_transports)};
    for (const auto& owned : transports_) named_.push_back({owned.name, owned.transport.get()});
    return {};
}

Result<EndpointRecord> JobTransports::endpoint_of(const NamedTransport& named, const npushmem_memory& slice) {
    EndpointRecord endpoint;
    endpoint.transport = hash_bytes(named.name);
    auto address = named.transport->address();
    if (!address.ok()) return address.status().within(fmt::format("transport {}", named.name));
    endpoint.address = std::move(address).value();
    auto registered = named.transport->register_memory(slice);
    if (!registered.ok())
        return registered.status().within(fmt::format("transport {} cannot use the symmetric heap", named.name));
    regions_.push_back(registered.value().region);
    endpoint.handle = std::move(registered.value().handle);
    return endpoint;
}

Status JobTransports::exchange_endpoints(const npushmem_memory& slice) {
    std::vector<EndpointRecord> mine;
    for (const auto& named : named_) {
        auto endpoint = endpoint_of(named, slice);
        if (!endpoint.ok()) return endpoint.status();
        mine.push_back(std::move(endpoint).value());
    }
    auto gathered = GatheredBytes::gather(job_.bootstrap(), pack_endpoints(mine));
    if (!gathered.ok()) return gathered.status();
    peer_addresses_ = PeerAddressTable(std::move(gathered).value(), job_.npes());
    return {};
}

std::uint64_t JobTransports::id_of(int transport) const {
    return hash_bytes(named_[static_cast<std::size_t>(transport)].name);
}

npushmem_peer JobTransports::peer_of(int transport, int pe) const {
    const PeRecord& record = job_.record(pe);
    const auto address = peer_addresses_.address(id_of(transport), pe);
    npushmem_peer peer{};
    peer.struct_size = sizeof peer;
    peer.pe = pe;
    peer.host = record.host;
    peer.process_id = record.process;
    peer.address_bytes = static_cast<std::uint32_t>(address.size());
    peer.address = address.data();
    peer.host_name = record.host_name;
    return peer;
}

Status JobTransports::build_map(WaitServices& waiting, Duration timeout) {
    const auto peer = [this](int transport, int pe) { return peer_of(transport, pe); };
    auto built = TransportMap::build(named_, job_.layout(), job_.my_pe(), peer);
    if (!built.ok()) return built.status();
    map_ = std::make_unique<TransportMap>(std::move(built).value());
    const PeerDirectory directory{
        peer, [this](int transport, int pe) { return peer_addresses_.handle(id_of(transport), pe); }};
    remote_peers_ = std::make_unique<RemotePeers>(named_, *map_, directory, waiting.transport_waiter, timeout);
    remote_ = std::make_unique<RemoteAccess>(*remote_peers_);
    remote_peers_->on_event([&waiting](int pe, Code code) {
        if (pe >= 0 && ends_a_peer(code)) waiting.liveness.mark_lost(pe);
    });
    return {};
}

}  // namespace npushmem
