// SPDX-License-Identifier: BSD-3-Clause
// The cases of the contract of collectives. Every PE runs the body of a case: a thread of the case's process, or a
// process that a launcher has started. The PEs exchange data through a bootstrap, beside the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "npushmem/testing/contract.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace npushmem::contract {

// One PE of a case, with the library open.
class CollectivesPe {
public:
    CollectivesPe(const CollectivesSubject& subject, Bootstrap& others) : subject_(subject), others_(others) {}

    // Opens the library; false, after a failure of the test, if that fails on any PE.
    bool open();
    void close() { library_.reset(); }
    [[nodiscard]] int index() const { return others_.rank(); }
    [[nodiscard]] int count() const { return others_.nranks(); }
    [[nodiscard]] Collectives& library() { return *library_; }

    // Collective over all PEs, without the library.
    void barrier();
    [[nodiscard]] bool all_agree(std::uint64_t value);

    // Collective over all PEs. Creates a team of `pes`; a PE that is no member takes part in the exchange only.
    // `wrong_exchange`: the exchange fails on all members.
    Result<std::uint64_t> try_team(const std::vector<int>& pes, std::uint32_t number, bool wrong_exchange = false);
    // The same, and expects success on members. Returns 0 on others.
    std::uint64_t make_team(const std::vector<int>& pes, std::uint32_t number);
    [[nodiscard]] std::vector<int> all_pes() const;

    // Starts a call and tests it until it is complete.
    void run(std::uint64_t team, const npushmem_coll_call& call);
    void finish(std::uint64_t request, Status started);

private:
    const CollectivesSubject& subject_;
    Bootstrap& others_;
    fakes::FakeHost host_;
    std::unique_ptr<Collectives> library_;
};

struct CollectivesCase {
    const char* name;
    const char* rule;  // that it tests, as a sentence
    void (*body)(CollectivesPe& pe);
};

std::span<const CollectivesCase> collectives_transfer_cases();
std::span<const CollectivesCase> collectives_reduction_cases();
std::span<const CollectivesCase> collectives_team_cases();

// For the bodies: a call without its type and operation.
npushmem_coll_call coll_call(std::uint32_t collective, const void* source, void* dest, std::uint64_t count);

// Byte j of what `pe` contributes to call `salt`.
inline std::byte contributed(int pe, std::uint64_t j, unsigned salt) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(pe) * 37 + j * 11 + salt * 101 + 1);
}

// Runs a case with PEs in threads of this process.
void run_collectives_case(const CollectivesSubject& subject, const CollectivesCase& which, int pes);

// For a process that a launcher has started as one of the job's PEs, connected by `others`: RUN_ALL_TESTS runs the
// cases in this process.
void add_collectives_contract_of_launched_pe(const CollectivesSubject& subject, Bootstrap& others);

}  // namespace npushmem::contract
