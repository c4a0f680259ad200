#include "bootstrap/rendezvous/rendezvous_services.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem::rendezvous {

RendezvousServices& RendezvousServices::of_process() {
    static RendezvousServices services;
    return services;
}

RendezvousService* RendezvousServices::find(const Address& where) const {
    const auto fits = [&](const std::unique_ptr<RendezvousService>& each) {
        const Address there = where.port() == 0 ? each->address().with_port(0) : each->address();
        return each->runs_in_this_process() && there == where;
    };
    const auto found = std::ranges::find_if(services_, fits);
    return found == services_.end() ? nullptr : found->get();
}

Result<UniqueId> RendezvousServices::serve(const Address& where, const MakeId& make_id) {
    const std::scoped_lock lock(mutex_);
    if (RendezvousService* running = find(where)) {
        auto id = make_id(running->address());
        if (id.ok()) running->add_job(id.value().credentials);
        return id;
    }
    auto listening = RendezvousService::listen(where);
    if (!listening.ok()) return listening.status();
    RendezvousService& service = *listening.value();
    auto id = make_id(service.address());
    if (!id.ok()) return id;
    service.add_job(id.value().credentials);
    if (Status begun = service.begin(); !begun.ok()) return begun;
    services_.push_back(std::move(listening).value());
    return id;
}

Status RendezvousServices::rank_ended(const UniqueId& id, int rank, int nranks, const std::string& how) {
    const std::scoped_lock lock(mutex_);
    RendezvousService* const service = find(id.service);
    if (service == nullptr)
        return {Code::state, fmt::format("no rendezvous service of this process listens at {}", id.service.text())};
    service->rank_ended(id.credentials.job, rank, nranks, how);
    return {};
}

}  // namespace npushmem::rendezvous
