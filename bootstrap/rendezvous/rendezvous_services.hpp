// Where the rendezvous services of this process live.
//
// The interface gives get_uniqueid no instance to put a service into, and the service must outlive both the call and
// every instance (an id serves one start after another). So it belongs to the process: of_process() holds the plugin's
// only mutable object of static lifetime. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/rendezvous_service.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"

namespace npushmem::rendezvous {

class RendezvousServices {
public:
    static RendezvousServices& of_process();

    // Makes an id whose service listens at `where` (port 0: any port) and serves it, in a service that is already there
    // or a new one.
    using MakeId = std::function<Result<UniqueId>(const Address& service)>;
    Result<UniqueId> serve(const Address& where, const MakeId& make_id);
    // See Job::rank_ended. Code::state when no service of this process serves the id.
    Status rank_ended(const UniqueId& id, int rank, int nranks, const std::string& how);

private:
    RendezvousService* find(const Address& where) const;

    std::mutex mutex_;
    std::vector<std::unique_ptr<RendezvousService>> services_;
};

}  // namespace npushmem::rendezvous
