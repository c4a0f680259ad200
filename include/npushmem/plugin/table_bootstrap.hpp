// SPDX-License-Identifier: BSD-3-Clause
// A Bootstrap over a table and an instance: the runtime's side of the boundary.
#pragma once

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

// As TableTransport: a full-size table with every pointer set, kept alive by the caller; closes the instance.
class TableBootstrap : public Bootstrap {
public:
    TableBootstrap(const npushmem_bootstrap_v1& table, void* self, int rank, int nranks)
        : table_(table), self_(self), rank_(rank), nranks_(nranks) {}
    ~TableBootstrap() override { table_.close(self_); }

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        ErrorBuffer error;
        const std::int32_t code = table_.allgather(self_, send.data(), send.size(), receive.data(), &error);
        return status_from(code, error);
    }
    Status barrier() override {
        ErrorBuffer error;
        const std::int32_t code = table_.barrier(self_, &error);
        return status_from(code, error);
    }
    void abort(const std::string& reason) override { table_.abort(self_, reason.c_str()); }
    Status check() override {
        ErrorBuffer error;
        const std::int32_t code = table_.check(self_, &error);
        return status_from(code, error);
    }

private:
    const npushmem_bootstrap_v1& table_;
    void* self_;
    int rank_;
    int nranks_;
};

}  // namespace npushmem
