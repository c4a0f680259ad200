// SPDX-License-Identifier: BSD-3-Clause
// A library of collectives over a table and an instance: the runtime's side of the boundary.
#pragma once

#include "npushmem/plugin/collectives.hpp"

namespace npushmem {

// As TableTransport: a full-size table with every pointer set, kept alive by the caller; closes the instance.
class TableCollectives : public Collectives {
public:
    TableCollectives(const npushmem_collectives_v1& table, void* self)
        : table_(table), self_(self), description_(described(table, self)) {}
    ~TableCollectives() override { table_.close(self_); }

    [[nodiscard]] const std::string& description() const override { return description_; }
    [[nodiscard]] std::uint64_t supports(std::uint32_t collective, std::uint32_t operation) const override {
        return table_.supports(self_, collective, operation);
    }
    Result<std::uint64_t> create_team(const npushmem_coll_team& team) override {
        ErrorBuffer error;
        std::uint64_t id = 0;
        const std::int32_t code = table_.create_team(self_, &team, &id, &error);
        return code == NPUSHMEM_OK ? Result<std::uint64_t>(id) : Result<std::uint64_t>(status_from(code, error));
    }
    void destroy_team(std::uint64_t id) override { table_.destroy_team(self_, id); }
    Status start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) override {
        return result([&](npushmem_error* error) { return table_.start(self_, team, &call, &request, error); });
    }
    Status test(std::uint64_t request) override {
        return result([&](npushmem_error* error) { return table_.test(self_, request, error); });
    }
    void abandon(std::uint64_t request) override { table_.abandon(self_, request); }

private:
    static std::string described(const npushmem_collectives_v1& table, void* self) {
        const char* const text = table.describe(self);
        return text != nullptr ? std::string(text) : std::string();
    }
    // A call that is usual in the data path: clears the message only, and makes no text for `again`.
    template <class Call>
    static Status result(Call&& call) {
        npushmem_error error;
        error.message[0] = '\0';
        const std::int32_t code = call(&error);
        if (code == NPUSHMEM_AGAIN) return {Code::again, {}};
        return status_from(code, error);
    }

    const npushmem_collectives_v1& table_;
    void* self_;
    std::string description_;
};

}  // namespace npushmem
