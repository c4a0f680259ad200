// SPDX-License-Identifier: BSD-3-Clause
#include "mine_collectives.hpp"

#include <utility>

#include "mine_reduction.hpp"

namespace mine_plugin {

Result<std::unique_ptr<npushmem::Collectives>> MineCollectives::open(const npushmem::Host& /*host*/,
                                                                     const npushmem_collectives_params& /*params*/) {
    return std::unique_ptr<npushmem::Collectives>(std::make_unique<MineCollectives>());
}

std::uint64_t MineCollectives::supports(std::uint32_t collective, std::uint32_t operation) const {
    if (collective < NPUSHMEM_COLL_REDUCE) return operation == 0 ? 1 : 0;
    return collective <= NPUSHMEM_COLL_REDUCESCATTER ? types_of(operation) : 0;
}

Result<std::uint64_t> MineCollectives::create_team(const npushmem_coll_team& team) {
    auto connections = Connections::make(team);
    if (!connections.ok()) return connections.status();
    const std::lock_guard guard(lock_);
    const std::uint64_t id = ++last_id_;
    teams_[id] = std::make_unique<Team>(Team{std::move(connections).value(), std::nullopt});
    return id;
}

// The members may still receive what this one has sent: the sockets keep it for them.
void MineCollectives::destroy_team(std::uint64_t id) {
    const std::lock_guard guard(lock_);
    teams_.erase(id);
}

MineCollectives::Team& MineCollectives::team_of(std::uint64_t id) {
    const std::lock_guard guard(lock_);
    return *teams_.at(id);
}

// A team has one call in progress, so its id names that call too.
Status MineCollectives::start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) {
    const bool reduction = call.collective >= NPUSHMEM_COLL_REDUCE;
    const std::uint64_t types = supports(call.collective, reduction ? call.operation : 0);
    const bool has = reduction ? call.type <= NPUSHMEM_COLL_C64 && (types >> call.type & 1) != 0 : types != 0;
    if (!has) return {Code::unsupported, "this library does not have the call"};
    Team& in = team_of(team);
    in.call.emplace(in.connections, call);
    request = team;
    return test(request);
}

Status MineCollectives::test(std::uint64_t request) {
    Team& in = team_of(request);
    Status done = in.call->progress();
    if (done.code() != Code::again) in.call.reset();
    return done;
}

// Other members may have received a part of the call; the host destroys the team next.
void MineCollectives::abandon(std::uint64_t request) { team_of(request).call.reset(); }

}  // namespace mine_plugin
