// SPDX-License-Identifier: BSD-3-Clause
#include "transports/hccs/peer_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

namespace npushmem::hccs {
namespace {

// The address of a PE. Fixed layout in native byte order, because only processes of one machine exchange it.
struct Address {
    static constexpr std::uint32_t magic_value = 0x53434348;  // "HCCS"
    std::uint32_t magic;
    std::int32_t npu;
};
static_assert(sizeof(Address) == 8);

// A further event drops the oldest.
constexpr std::size_t max_events = 64;
// The load of an operation on a link.
struct Load {
    const char* name;
    Direction direction;
    std::uint64_t bytes;
};

Load load_of(const PostedOperation& operation) {
    constexpr std::uint64_t signal_bytes = 8;
    if (const auto* put = std::get_if<PostedPut>(&operation.what)) return {"a put", Direction::out, put->op.bytes};
    if (const auto* get = std::get_if<PostedGet>(&operation.what)) return {"a get", Direction::in, get->op.bytes};
    if (const auto* atomic = std::get_if<npushmem_atomic>(&operation.what))
        return {"an atomic", Direction::out, atomic->width};
    return {"a put with signal", Direction::out,
            std::get<npushmem_put_signal>(operation.what).data.bytes + signal_bytes};
}

}  // namespace

PeerLinks::PeerLinks(const npushmem_transport_params& params, Settings settings)
    : my_pe_(params.pe),
      npu_(params.local_index),
      settings_(std::move(settings)),
      peers_(static_cast<std::size_t>(std::max(params.npes, 0))),
      clock_(settings_.speeds) {}

Bytes PeerLinks::address() const {
    const Address mine{Address::magic_value, npu_};
    Bytes out(sizeof mine);
    std::memcpy(out.data(), &mine, sizeof mine);
    return out;
}

Result<int> PeerLinks::npu_of(const npushmem_peer& peer) const {
    if (peer.pe == my_pe_) return npu_;
    Address theirs{};
    if (peer.address == nullptr || peer.address_bytes != sizeof theirs)
        return Status{Code::unreachable, "the peer has not opened this transport"};
    std::memcpy(&theirs, peer.address, sizeof theirs);
    if (theirs.magic != Address::magic_value)
        return Status{Code::protocol, "the peer's address is not an address of hccs"};
    return theirs.npu;
}

std::uint64_t PeerLinks::limit_of(const Path& path) const {
    const auto [low, high] = std::minmax(path.near, path.far);
    for (const auto& link : settings_.failed)
        if (link.low == low && link.high == high) return link.after;
    return unlimited;
}

bool PeerLinks::has_deferred_failure() const {
    return std::any_of(settings_.failed.begin(), settings_.failed.end(),
                       [](const FailedLink& link) { return link.after > 0; });
}

Reach PeerLinks::reach(const npushmem_peer& peer, Reach out) {
    const auto npu = npu_of(peer);
    if (!npu.ok()) return {0, 0, 0, npu.status().message()};
    const auto path = settings_.links.between(npu_, npu.value());
    if (!path.ok()) return {0, 0, 0, path.status().message()};
    const std::uint64_t limit = limit_of(path.value());
    if (limit == 0)
        return {0, 0, 0,
                fmt::format("{} (NPU {} of PE {} to NPU {} of PE {}) is down, as NPUSHMEM_HCCS_FAIL requests",
                            path.value().name(), npu_, my_pe_, npu.value(), peer.pe)};
    const bool mapped = path.value().kind == LinkKind::none || (!settings_.timed && !has_deferred_failure());
    if (peer.pe >= 0 && static_cast<std::size_t>(peer.pe) < peers_.size())
        peers_[static_cast<std::size_t>(peer.pe)] = {path.value(), 0, limit, mapped};
    out.why = path.value().name();
    if (mapped) return out;
    out.capabilities &= ~static_cast<std::uint64_t>(NPUSHMEM_CAP_MAP);
    out.why += settings_.timed ? ", timed" : ", not mapped, because a link will fail";
    return out;
}

bool PeerLinks::is_mapped(int pe) const {
    const auto index = static_cast<std::size_t>(pe);
    return index >= peers_.size() || peers_[index].mapped;
}

Engines::Start PeerLinks::begin(const PostedOperation& operation, Nanoseconds now) {
    const int pe = operation.pe();
    // Memory rejects an unknown PE when the operation executes.
    if (pe < 0 || static_cast<std::size_t>(pe) >= peers_.size()) return {};
    Peer& peer = peers_[static_cast<std::size_t>(pe)];
    if (peer.transfers >= peer.fails_after) {
        report_failure(pe, peer, operation);
        return {Code::unreachable, Nanoseconds{0}};
    }
    ++peer.transfers;
    if (!settings_.timed) return {};
    const Load load = load_of(operation);
    // More than an address space: it would occupy the link for years before memory rejects it.
    constexpr std::uint64_t address_space = std::uint64_t{1} << 47;
    if (load.bytes > address_space) return {Code::range, Nanoseconds{0}};
    return {Code::ok, clock_.transfer(peer.path, load.direction, load.bytes, now)};
}

void PeerLinks::report_failure(int pe, const Peer& peer, const PostedOperation& operation) {
    const Load load = load_of(operation);
    const std::string text = fmt::format(
        "{} between PE {} (NPU {}) and PE {} (NPU {}) is down, as NPUSHMEM_HCCS_FAIL requests: {} of {} bytes was not "
        "carried out",
        peer.path.name(), my_pe_, peer.path.near, pe, peer.path.far, load.name, load.bytes);
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(Code::unreachable);
    event.pe = pe;
    text.copy(event.message, sizeof event.message - 1);
    const std::lock_guard lock(events_lock_);
    if (events_.size() >= max_events) events_.pop_front();
    events_.push_back(event);
}

Code PeerLinks::poll_event(npushmem_event& out) {
    const std::lock_guard lock(events_lock_);
    if (events_.empty()) return Code::again;
    const std::uint32_t size = out.struct_size;
    out = events_.front();
    out.struct_size = size;
    events_.pop_front();
    return Code::ok;
}

}  // namespace npushmem::hccs
