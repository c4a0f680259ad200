// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/leader_exchange.hpp"

#include <cstring>
#include <utility>

#include "core/base/host_facts.hpp"
#include "core/coll/steps.hpp"

namespace npushmem::coll {

LeaderExchange::LeaderExchange(Group& group, HostSync& sync, std::uint64_t at, std::uint64_t areas_in_use,
                               std::uint64_t broadcast_room_in_use)
    : group_(group),
      sync_(sync),
      at_(at),
      places_(static_cast<std::size_t>(group.size())),
      areas_(areas_in_use),
      broadcast_room_(broadcast_room_in_use) {
    std::uint64_t place = 0;
    for (int host = 0; host < sync.hosts(); ++host)
        for (const int member : sync.members_on(host)) places_[static_cast<std::size_t>(member)] = place++;
}

std::uint64_t LeaderExchange::max_payload(bool each) const {
    return each ? block_bytes(group_.size()) : payload_bytes(group_.size());
}

Status LeaderExchange::send_payloads(Status done, int host, std::uint64_t area, std::uint64_t count, bool each) {
    const std::vector<int>& members = sync_.members_on(sync_.host());
    const std::uint64_t per_member = each ? places_.size() * count : count;
    const std::uint64_t at = area + place_of(sync_.leader()) * per_member;
    const std::byte* const payloads = local_address(group_, at);
    const int leader = sync_.leader_on(host);
    if (!each) return sync_.send(std::move(done), leader, at, payloads, members.size() * count);
    const std::uint64_t sent = members.size() * sync_.members_on(host).size() * count;
    blocks_.resize(std::max<std::uint64_t>(blocks_.size(), sent));
    auto filled = blocks_.begin();
    for (std::size_t i = 0; i < members.size(); ++i)
        for (const int receiver : sync_.members_on(host)) {
            const std::byte* const from = payloads + i * per_member + static_cast<std::uint64_t>(receiver) * count;
            filled = std::copy_n(from, count, filled);
        }
    return sync_.send(std::move(done), leader, at, blocks_.data(), sent);
}

Status LeaderExchange::run(const std::byte* source, std::uint64_t count, bool each) {
    const int own = group_.index();
    const std::uint64_t per_member = each ? places_.size() * count : count;
    const std::uint64_t payloads = area();  // before the exchange, which ends it
    Status done = sync_.broken();
    if (done.ok()) done = write(group_, sync_.leader(), payloads + place_of(own) * per_member, source, per_member);
    done = sync_.exchange(std::move(done), [&](Status so_far, int host) {
        return send_payloads(std::move(so_far), host, payloads, count, each);
    });
    const std::uint64_t received_step = rounded_up(count, 16);
    received_.resize(std::max<std::uint64_t>(received_.size(), places_.size() * received_step));
    set_received(received_.data(), received_step);
    // A message to another host has blocks for the members there, and not for all.
    const auto own_host = static_cast<std::uint64_t>(sync_.members_on(sync_.host()).size());
    const std::uint64_t own_on_host = place_of(own) - place_of(sync_.leader());
    for (int member = 0; member < group_.size() && done.ok(); ++member) {
        const std::uint64_t first = place_of(sync_.leader_on(sync_.host_of(member)));
        const std::uint64_t on_host = place_of(member) - first;
        std::uint64_t at = payloads + first * per_member;
        if (!each)
            at += on_host * count;
        else if (sync_.is_on_host(member))
            at += on_host * per_member + static_cast<std::uint64_t>(own) * count;
        else
            at += (on_host * own_host + own_on_host) * count;
        done = read(group_, sync_.leader(), at, &received_[static_cast<std::uint64_t>(member) * received_step], count);
    }
    return done;
}

Status LeaderExchange::take_room(std::uint64_t count, std::uint64_t& at) {
    const std::uint64_t wanted = rounded_up(count, 64);
    Status done = sync_.prepare(1);
    if (sync_.exchanges() != used_after_) used_ = 0;
    if (used_ + wanted > broadcast_room_) {  // not after an exchange
        done = sync_.meet();
        used_ = 0;
    }
    at = at_ + used_;
    used_ += wanted;
    used_after_ = sync_.exchanges();
    return done;
}

Status LeaderExchange::broadcast(const std::byte* source, std::byte* dest, std::uint64_t count, int root) {
    std::uint64_t at = 0;
    Status done = take_room(count, at);
    const bool is_root = group_.index() == root;
    // The member that holds the payload for this host.
    const int holder = sync_.is_on_host(root) ? root : sync_.leader();
    if (is_root) {
        for (const int host : sync_.other_hosts())
            done = sync_.send(std::move(done), sync_.leader_on(host), at, source, count);
        if (done.ok()) done = write(group_, root, at, source, count);
    } else if (group_.index() == holder) {
        done = sync_.receive(std::move(done), root);
    }
    if (group_.index() == holder)
        done = sync_.announce(std::move(done));
    else
        done = sync_.wait_for(std::move(done), holder);
    sync_.next_step();
    sync_.next_epoch(false);
    if (!done.ok() || dest == nullptr) return done;
    return read(group_, holder, at, dest, count);
}

}  // namespace npushmem::coll
