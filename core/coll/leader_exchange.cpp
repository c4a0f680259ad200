// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/leader_exchange.hpp"

#include <cstring>
#include <utility>

#include "core/base/host_facts.hpp"
#include "core/coll/steps.hpp"

namespace npushmem::coll {

LeaderExchange::LeaderExchange(Group& group, HostSync& sync, std::uint64_t at)
    : group_(group), sync_(sync), at_(at), places_(static_cast<std::size_t>(group.size())) {
    std::uint64_t before = 0;
    for (int host = 0; host < sync.hosts(); ++host) {
        const std::vector<int>& members = sync.members_on(host);
        first_of_.push_back(before);
        before += members.size();
        for (std::size_t i = 0; i < members.size(); ++i)
            places_[static_cast<std::size_t>(members[i])] = {host, static_cast<int>(i)};
    }
}

std::uint64_t LeaderExchange::max_payload(bool each) const {
    return each ? block_bytes(group_.size()) : payload_bytes(group_.size());
}

std::uint64_t LeaderExchange::payloads_of(int host, std::uint64_t per_member) const {
    return at_ + sync_.turn() * room + first_of_[static_cast<std::size_t>(host)] * per_member;
}

Status LeaderExchange::send_payloads(Status done, int host, std::uint64_t count, bool each) {
    const std::vector<int>& members = sync_.members_on(sync_.host());
    const std::uint64_t per_member = each ? places_.size() * count : count;
    const std::uint64_t at = payloads_of(sync_.host(), per_member);
    const std::byte* const payloads = local_address(group_, at);
    const int leader = sync_.leader_on(host);
    if (!each) return sync_.send(std::move(done), leader, at, payloads, members.size() * count);
    std::array<std::byte, room> blocks;
    std::uint64_t filled = 0;
    for (std::size_t i = 0; i < members.size(); ++i)
        for (const int receiver : sync_.members_on(host)) {
            const std::byte* const from = payloads + i * per_member + static_cast<std::uint64_t>(receiver) * count;
            std::copy_n(from, count, &blocks[filled]);
            filled += count;
        }
    return sync_.send(std::move(done), leader, at, blocks.data(), filled);
}

Status LeaderExchange::run(const std::byte* source, std::uint64_t count, bool each) {
    const int leader = sync_.leader_on(sync_.host());
    const std::uint64_t per_member = each ? places_.size() * count : count;
    const auto own = static_cast<std::uint64_t>(sync_.local_index());
    Status done = sync_.broken();
    if (done.ok())
        done = write(group_, leader, payloads_of(sync_.host(), per_member) + own * per_member, source, per_member);
    const std::uint64_t first = payloads_of(0, 0);  // of this turn, which the exchange ends
    done = sync_.exchange(std::move(done),
                          [&](Status so_far, int host) { return send_payloads(std::move(so_far), host, count, each); });
    const std::uint64_t received_step = rounded_up(count, 16);
    set_received(received_.data(), received_step);
    for (int member = 0; member < group_.size() && done.ok(); ++member) {
        const Place& sender = place_of(member);
        const auto index = static_cast<std::uint64_t>(sender.local_index);
        std::uint64_t at = first + first_of_[static_cast<std::size_t>(sender.host)] * per_member;
        if (!each)
            at += index * count;
        else if (sender.host == sync_.host())
            at += index * per_member + static_cast<std::uint64_t>(group_.index()) * count;
        else
            at += (index * sync_.members_on(sync_.host()).size() + own) * count;
        done = read(group_, leader, at, &received_[static_cast<std::uint64_t>(member) * received_step], count);
    }
    return done;
}

Status LeaderExchange::broadcast(const std::byte* source, std::byte* dest, std::uint64_t count, int root) {
    Status done = sync_.prepare(1);
    const int root_host = place_of(root).host;
    const bool is_root = group_.index() == root;
    const std::uint64_t at = payloads_of(0, 0);  // no other payload is in this turn
    // The member that holds the payload for this host.
    const int holder = root_host == sync_.host() ? root : sync_.leader_on(sync_.host());
    if (is_root) {
        for (int i = 1; i < sync_.hosts(); ++i) {
            const int host = (root_host + i) % sync_.hosts();
            done = sync_.send(std::move(done), sync_.leader_on(host), at, source, count);
        }
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
