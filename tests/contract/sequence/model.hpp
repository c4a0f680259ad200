// SPDX-License-Identifier: BSD-3-Clause
// The reference model of a sequence: the contents of all regions, and the values that an operation may fetch.
//
// The model admits only operations whose effect transport.h determines. Two operations on overlapping bytes, of which
// one is an update, must not both be outstanding, unless
//  - a fence orders them: same PE, queue and target, the earlier one an update, a fence in between; or
//  - they are atomics on the same word whose updates commute. Then the final value is determined, and a fetched value
//    is one of a set: the value before all of them, updated by any of the others.
// An operation is outstanding from its post until the quiet of its queue; a read ends with the wait for its token too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/sequence/operation.hpp"

namespace npushmem::contract::sequence {

class Model {
public:
    // The world must outlive the model.
    explicit Model(const World& world);

    // Whether the operation is valid now and has a determined effect.
    [[nodiscard]] bool admits(const Operation& op) const;
    // Applies an operation that the model admits.
    void apply(const Operation& op);

    // Checks the value that an operation has fetched, at the moment when it is known to be complete: before `apply` of
    // the wait or quiet that showed it. Returns what is wrong.
    [[nodiscard]] std::optional<std::string> check_fetched(int id, std::span<const std::byte> value) const;
    // Compares a region with its real bytes, except those that an outstanding update may be changing. It does not read
    // these bytes. Returns what is wrong.
    [[nodiscard]] std::optional<std::string> check_region(int pe, int region, std::span<const std::byte> real) const;

    // For the generator.
    [[nodiscard]] bool queue_exists(int pe, int queue) const { return queues_.contains({pe, queue}); }
    [[nodiscard]] bool region_exists(int pe, int region) const { return memory_.contains({pe, region}); }
    // The ids that a wait of this PE may name.
    [[nodiscard]] std::vector<int> waitable(int pe) const;

private:
    using PeAndNumber = std::pair<int, int>;

    // Atomics on one word that commute and were outstanding at once.
    struct Group {
        std::uint64_t base = 0;  // the word before all of them
        std::uint8_t width = 8;
        int commuting = 0;               // their class
        std::vector<Operation> members;  // in the order of their posts
    };
    // Bytes that an operation reads or updates until it is complete.
    struct Access {
        Operation op;
        int region = 0;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        bool updates = false;
        bool is_signal = false;  // the signal of a put_signal
        bool fenced = false;     // by a fence on its queue
    };
    struct Token {
        int pe;
        int queue;
    };
    // A fetching atomic: its group, and the members that are ordered before it.
    struct Fetch {
        std::shared_ptr<Group> group;
        std::set<int> earlier;
    };

    static std::vector<Access> accesses_of(const Operation& op);
    [[nodiscard]] bool admits_data(const Operation& op) const;
    [[nodiscard]] bool admits_atomic(const Operation& op, const Offer& offer) const;
    [[nodiscard]] bool fits(const Operation& op, const Access& access) const;
    [[nodiscard]] bool joins_group_of(const Operation& op, const Operation& other) const;
    [[nodiscard]] bool is_determined(const Access& access) const;
    [[nodiscard]] bool can_access(int pe, int to, int region) const;
    [[nodiscard]] bool in_use(int pe, int to, int region) const;
    void put_blocks(const Operation& op);
    void apply_data(const Operation& op);
    void apply_atomic(const Operation& op);
    void finish_queue(int pe, int queue);
    [[nodiscard]] std::uint64_t word(const Operation& op) const;
    [[nodiscard]] std::shared_ptr<Group> group_for(const Operation& op);
    void drop_finished_groups();
    static bool is_ordered(const Access& earlier, const Operation& op);
    [[nodiscard]] std::set<int> members_before(const Group& group, const Operation& op) const;
    static std::set<std::uint64_t> possible_values(const Fetch& fetch, int id);

    const World& world_;
    std::map<PeAndNumber, std::vector<std::byte>> memory_;  // by PE and region
    std::set<PeAndNumber> queues_;
    std::set<PeAndNumber> imports_;  // second regions: importer and owner
    std::vector<Access> outstanding_;
    std::map<int, Token> tokens_;                     // by id: those that may be waited for
    std::map<int, std::vector<std::byte>> expected_;  // of gets, by id
    std::map<int, Fetch> fetched_;                    // fetching atomics, by id
    // The latest group of a word: by PE, region and offset.
    std::map<std::pair<PeAndNumber, std::uint64_t>, std::shared_ptr<Group>> groups_;
};

}  // namespace npushmem::contract::sequence
