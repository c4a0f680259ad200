// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_transports.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>

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

// Every name costs a round of the bootstrap, so PEs with different lists would block each other.
Status check_equal_orders(Bootstrap& bootstrap, const std::vector<std::string>& names) {
    const std::string order = fmt::format("{}", fmt::join(names, ","));
    const auto hashes = gather(bootstrap, hash_bytes(order));
    if (!hashes.ok()) return hashes.status();
    const auto& all = hashes.value();
    const auto other = std::find_if(all.begin(), all.end(), [&all](std::uint64_t hash) { return hash != all.front(); });
    if (other == all.end()) return {};
    return {Code::config, fmt::format("PE {} has another NPUSHMEM_REMOTE_ORDER than PE 0 (PE {} has '{}'): set it to "
                                      "the same value for all PEs",
                                      other - all.begin(), bootstrap.rank(), order)};
}

std::string cost_description(double cost, bool is_latency) {
    if (cost == 0) return "of unknown cost";
    if (cost == std::numeric_limits<double>::infinity()) return "does not reach all PEs";
    return is_latency ? fmt::format("latency of about {:.1f} us", cost / 1000) : cost_text(cost);
}

// The maximum; 0 (unknown) if one is unknown, unless one is infinite.
double max_cost(const std::vector<double>& costs) {
    const double maximum = costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end());
    const bool unknown = std::find(costs.begin(), costs.end(), 0) != costs.end();
    return unknown && maximum != std::numeric_limits<double>::infinity() ? 0 : maximum;
}

// Returns the index of the lowest cost, the first of equal ones. If some cost is unknown (0), the order decides between
// the candidates that reach all PEs (whose cost is finite).
std::size_t cheapest_or_first(const std::vector<double>& costs) {
    if (costs.empty()) return 0;
    const bool known = std::find(costs.begin(), costs.end(), 0) == costs.end();
    const auto is_finite = [](double cost) { return cost != std::numeric_limits<double>::infinity(); };
    const auto chosen =
        known ? std::min_element(costs.begin(), costs.end()) : std::find_if(costs.begin(), costs.end(), is_finite);
    return static_cast<std::size_t>(chosen - costs.begin());
}

}  // namespace

bool has_fabric_device(const std::string& device_classes) {
    const auto has_entries = [&device_classes](const char* name) {
        std::error_code failed;
        const std::filesystem::directory_iterator entries(std::filesystem::path(device_classes) / name, failed);
        return !failed && entries != std::filesystem::directory_iterator();
    };
    return has_entries("infiniband") || has_entries("cxi");
}

Result<RemoteCandidates> open_remote_candidates(
    const Settings& settings, bool served, bool fabric, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open) {
    RemoteCandidates out;
    const bool wanted = lowercase(settings.remote_transport) == "auto" && !served;
    auto decided = first_refusing_pe(bootstrap, wanted);
    if (!decided.ok()) return decided.status();
    if (decided.value() >= 0) {
        if (wanted)
            out.text = fmt::format("none: PE {} selected its own, so NPUSHMEM_REMOTE_TRANSPORT=auto chose nothing",
                                   decided.value());
        return out;
    }
    const auto without_fabric = first_refusing_pe(bootstrap, !fabric);
    if (!without_fabric.ok()) return without_fabric.status();
    bool comparable = without_fabric.value() >= 0;
    std::string tried;
    const std::vector<std::string> names = names_in(settings.remote_order);
    if (Status equal = check_equal_orders(bootstrap, names); !equal.ok()) return equal;
    for (const std::string& name : names) {
        auto opened = open(name);
        auto refused = first_refusing_pe(bootstrap, opened.ok());
        if (!refused.ok()) return refused.status();
        if (refused.value() < 0) {
            out.transports.push_back(std::move(opened).value());
            if (!comparable) break;
            const auto driving_nics = first_refusing_pe(bootstrap, !out.transports.back().nics);
            if (!driving_nics.ok()) return driving_nics.status();
            comparable = driving_nics.value() < 0;
            if (!comparable) break;
            continue;
        }
        if (!tried.empty()) tried += "; not ";
        tried += opened.ok() ? fmt::format("{}: PE {} cannot open it", name, refused.value())
                             : fmt::format("{}: {}", name, opened.status().message());
    }
    out.text = tried;
    if (out.transports.empty())
        out.text = fmt::format("none (NPUSHMEM_REMOTE_TRANSPORT=auto tried {})",
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
    if (liveness_ != nullptr) liveness_->on_dead(nullptr);
    remote_.reset();
    local_buffers_.reset();
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

void JobTransports::add(RemoteCandidates candidates) {
    candidates_ = candidates.transports.size();
    candidates_text_ = std::move(candidates.text);
    for (OwnedTransport& each : candidates.transports) add(std::move(each));
}

bool JobTransports::has_nics() const {
    return std::any_of(transports_.begin(), transports_.end(), [](const auto& one) { return one.nics; });
}

Result<JobTransports::PathCost> JobTransports::cost_between_hosts(Transport& transport) const {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    const auto address = transport.address();
    const auto addresses = GatheredBytes::gather(job_.bootstrap(), address.ok() ? address.value() : Bytes{});
    if (!addresses.ok()) return addresses.status();
    std::vector<double> latencies;
    std::vector<double> estimates;
    for (int pe = 0; pe < job_.npes(); ++pe) {
        if (job_.is_local(pe)) continue;
        const Reach reach = transport.reach(peer_at(pe, addresses.value().of(pe)));
        const bool reachable = reach.reachable();
        latencies.push_back(reachable ? static_cast<double>(reach.latency_ns) : infinite);
        const double estimate = reach.bytes_per_second == 0 ? 0 : estimated_ns(reach);
        estimates.push_back(reachable ? estimate : infinite);
    }
    const auto of_all = gather(job_.bootstrap(), PathCost{max_cost(latencies), max_cost(estimates)});
    if (!of_all.ok()) return of_all.status();
    latencies.clear();
    estimates.clear();
    for (const PathCost& each : of_all.value()) {
        latencies.push_back(each.latency_ns);
        estimates.push_back(each.estimate_ns);
    }
    return PathCost{max_cost(latencies), max_cost(estimates)};
}

Result<std::string> JobTransports::choose_candidate() {
    if (candidates_ == 0) return candidates_text_;
    const std::size_t first = transports_.size() - candidates_;
    std::vector<double> latencies;
    std::vector<double> costs;
    for (std::size_t i = first; i < named_.size() && candidates_ > 1; ++i) {
        const auto cost = cost_between_hosts(*named_[i].transport);
        if (!cost.ok()) return cost.status();
        latencies.push_back(cost.value().latency_ns);
        costs.push_back(cost.value().estimate_ns);
    }
    const bool by_latency = std::find(costs.begin(), costs.end(), 0) != costs.end();
    if (by_latency) costs = latencies;
    const std::size_t chosen = cheapest_or_first(costs);
    std::string text = "NPUSHMEM_REMOTE_TRANSPORT=auto";
    for (std::size_t i = 0; i < costs.size(); ++i)
        text += fmt::format("{} {}: {}", i == 0 ? "," : ";", named_[first + i].name,
                            cost_description(costs[i], by_latency));
    if (!candidates_text_.empty()) text += "; not " + candidates_text_;
    text = fmt::format("{} ({})", named_[first + chosen].name, text);
    std::swap(transports_[first], transports_[first + chosen]);
    std::swap(named_[first], named_[first + chosen]);
    named_.resize(first + 1);
    transports_.resize(first + 1);
    transports_.back().why = text;
    return text;
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

Status JobTransports::exchange_endpoints(const npushmem_memory& slice, std::span<std::byte> rows) {
    std::vector<EndpointRecord> mine;
    for (const auto& named : named_) {
        auto endpoint = endpoint_of(named, slice);
        if (!endpoint.ok()) return endpoint.status();
        ids_.push_back(endpoint.value().transport);
        mine.push_back(std::move(endpoint).value());
    }
    const Bytes packed = pack_endpoints(mine);
    auto gathered = rows.empty() ? GatheredBytes::gather(job_.bootstrap(), packed)
                                 : GatheredBytes::gather_in(rows, job_.bootstrap(), packed);
    if (!gathered.ok()) return gathered.status();
    peer_addresses_ = PeerAddressTable(std::move(gathered).value(), job_.npes());
    return {};
}

Status JobTransports::publish_endpoints(HostMemory& memory) {
    const GatheredBytes& gathered = peer_addresses_.gathered();
    return gathered.is_shared() ? Status{} : memory.publish(HostMemory::Publication::endpoints, gathered.view());
}

void JobTransports::share_endpoints(const HostMemory& memory) {
    const auto published = memory.published(HostMemory::Publication::endpoints);
    if (!published.empty()) peer_addresses_.gathered().use_copy(published);
}

bool JobTransports::reads_endpoints_in(const HostMemory& memory) const {
    return peer_addresses_.gathered().view().data() == memory.published(HostMemory::Publication::endpoint_rows).data();
}

npushmem_peer JobTransports::peer_of(int transport, int pe) const {
    return peer_at(pe, peer_addresses_.address(id_of(transport), pe));
}

npushmem_peer JobTransports::peer_at(int pe, std::span<const std::byte> address) const {
    const PeTable::Traits& traits = job_.pes().traits(pe);
    npushmem_peer peer{};
    peer.struct_size = sizeof peer;
    peer.pe = pe;
    peer.host = traits.host;
    peer.process_id = job_.sees_process_of(pe) ? job_.pes().process(pe).pid : 0;
    peer.address_bytes = static_cast<std::uint32_t>(address.size());
    peer.address = address.data();
    peer.host_name = traits.host_name.c_str();
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
    std::vector<NamedTransport> pinning;
    for (std::size_t i = 0; i < named_.size(); ++i)
        if (transports_[i].pins) pinning.push_back(named_[i]);
    local_buffers_ = std::make_unique<LocalBuffers>(std::move(pinning), *remote_peers_);
    remote_peers_->on_event([&liveness = waiting.liveness](int pe, Code code) {
        const bool is_lost = pe >= 0 && ends_a_peer(code);
        if (is_lost) liveness.mark_lost(pe);
        return is_lost && liveness.survives_deaths();
    });
    if (waiting.liveness.survives_deaths()) remote_peers_->survive_deaths();
    remote_peers_->on_failure([&liveness = waiting.liveness](int pe) { return liveness.is_acknowledged(pe); });
    liveness_ = &waiting.liveness;
    liveness_->on_dead([&peers = *remote_peers_](int pe) { peers.forget(pe); });
    return {};
}

bool JobTransports::report_arrivals(void (*arrived)(void* context), void* context) {
    std::uint64_t serving = 0;
    for (const RouteRange& range : map_->ranges())
        if (!range.route.maps()) serving |= std::uint64_t{1} << range.route.transport;
    bool all = true;
    for (std::size_t i = 0; i < named_.size(); ++i) {
        // A PE of another host may prefer another transport than this one does.
        const bool receives = transports_[i].remote || (serving >> i & 1U) != 0;
        if (receives) all = named_[i].transport->report_arrivals(arrived, context) == Code::ok && all;
    }
    return all;
}

}  // namespace npushmem
