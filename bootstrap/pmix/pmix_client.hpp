// This process as a client of PMIx, by its library.
#pragma once

#include <string>
#include <utility>

#include "bootstrap/launcher/launcher.hpp"

namespace npushmem::pmix {

class PmixClient final : public launcher::Launcher {
public:
    using Deadline = launcher::Deadline;

    static Result<PmixClient> begin();
    PmixClient(PmixClient&& other) noexcept
        : namespace_(std::move(other.namespace_)),
          rank_(other.rank_),
          nranks_(other.nranks_),
          broadcasts_(other.broadcasts_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> broadcast(const std::string& message, Deadline deadline) override;
    // The launcher takes a process that goes without this for one that has crashed.
    void end();

private:
    PmixClient() = default;
    [[nodiscard]] Result<std::string> get(const std::string& key, int from_rank, Deadline deadline) const;

    std::string namespace_;  // the job's name
    int rank_ = -1;
    int nranks_ = -1;
    std::uint64_t broadcasts_ = 0;  // messages so far: each has a key of its own
};

}  // namespace npushmem::pmix
