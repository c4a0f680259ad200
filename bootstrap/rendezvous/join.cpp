#include "bootstrap/rendezvous/join.hpp"

#include "bootstrap/rendezvous/job_join.hpp"
#include "bootstrap/rendezvous/tree_bootstrap.hpp"

namespace npushmem::rendezvous {

Result<std::unique_ptr<Bootstrap>> join_or_report(const Result<Settings>& read, const Settings& fallback,
                                                  const UniqueId& id, int rank, int nranks) {
    if (nranks == 1)
        return read.ok() ? Result<std::unique_ptr<Bootstrap>>(TreeBootstrap::single_rank())
                         : Result<std::unique_ptr<Bootstrap>>(read.status());
    auto collectives = JobJoin(read.ok() ? read.value() : fallback, id, rank, nranks).run();
    if (!collectives.ok()) return read.ok() ? collectives.status() : read.status();
    auto job = std::make_unique<TreeBootstrap>(std::move(collectives).value(), rank, nranks);
    if (read.ok()) return std::unique_ptr<Bootstrap>(std::move(job));
    job->abort(read.status().message());
    return read.status();
}

}  // namespace npushmem::rendezvous
