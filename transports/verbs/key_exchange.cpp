// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/key_exchange.hpp"

#include <fmt/format.h>

namespace npushmem::verbs {
namespace {

// The connection of lane 0. Null when it cannot be created.
Connection* first_connection(ConnectionManager& manager, int pe) {
    Connection* ignored = nullptr;
    (void)manager.connection_to({pe}, ignored);
    return manager.peers().lane({pe}).connection.get();
}

}  // namespace

Prepared KeyExchange::prepare(Connection& connection, const network::RemoteAddress& place, std::uint64_t bytes,
                              network::WireContext& context) {
    RemoteMemory& remote = at(place.key);
    if (!remote.has(place.offset, bytes))
        return failures_.add(context, {Code::range, "the range exceeds the peer's memory"});
    if (auto failure = remote.take_failure(place.offset, bytes)) return failures_.add(context, std::move(*failure));
    Connection* const carrier = place.lane_id.lane == 0 ? &connection : first_connection(manager_, place.lane_id.pe);
    if (carrier == nullptr || !carrier->failure().ok()) return failures_.add(context, {Code::peer_dead, last_error_});
    const bool known = remote.has_keys(place.offset, bytes, [&](std::uint64_t chunk) {
        messages_.send_control(*carrier, KeyRequest::kind, bytes_from(KeyRequest{remote.region(), chunk, place.key}));
    });
    return known ? Prepared::yes : Prepared::not_yet;
}

KeyReply KeyExchange::reply_to(const KeyRequest& request) {
    KeyReply out;
    out.key = request.key;
    out.chunk = request.chunk;
    const auto rkey = memory_.rkey(request.region, request.chunk);
    if (rkey.ok()) out.rkey = rkey.value();
    out.code = static_cast<std::int32_t>(rkey.ok() ? Code::ok : rkey.status().code());
    if (!rkey.ok()) (void)rkey.status().message().copy(out.why.data(), out.why.size() - 1);
    return out;
}

void KeyExchange::handle(Connection& connection, std::uint32_t kind, std::span<const std::byte> bytes) {
    if (kind == KeyRequest::kind) {
        const auto request = plain_from<KeyRequest>(bytes);
        if (request) messages_.send_control(connection, KeyReply::kind, bytes_from(reply_to(*request)));
        return;
    }
    const auto answer = plain_from<KeyReply>(bytes);
    if (kind != KeyReply::kind || !answer) return;
    RemoteMemory* const remote = answer->key - 1 < remote_.size() ? remote_[answer->key - 1].get() : nullptr;
    if (remote == nullptr || remote->pe() != connection.pe()) return;
    if (answer->code == 0) return remote->set_key(answer->chunk, answer->rkey);
    remote->set_failure(answer->chunk,
                        {static_cast<Code>(answer->code), fmt::format("the peer reports: {}", answer->why.data())});
}

}  // namespace npushmem::verbs
