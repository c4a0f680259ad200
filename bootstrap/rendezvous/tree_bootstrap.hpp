// A job that stands: the bootstrap that every plugin returns once its ranks have found each other.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "bootstrap/rendezvous/collectives.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::rendezvous {

class TreeBootstrap final : public Bootstrap {
public:
    TreeBootstrap(std::unique_ptr<Collectives> collectives, int rank, int nranks)
        : collectives_(std::move(collectives)), rank_(rank), nranks_(nranks) {}
    // A job of one rank, which needs nobody.
    static std::unique_ptr<Bootstrap> single_rank();

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    Status barrier() override { return collectives_->barrier(); }
    void abort(const std::string& reason) override;
    Status check() override { return collectives_->links().check(); }

private:
    std::unique_ptr<Collectives> collectives_;
    int rank_;
    int nranks_;
};

}  // namespace npushmem::rendezvous
