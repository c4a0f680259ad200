// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/sequence/execution.hpp"

#include <algorithm>

#include "tests/contract/sequence/generator.hpp"
#include "tests/contract/sequence/model.hpp"

namespace npushmem::contract::sequence {
namespace {

class Execution {
public:
    Execution(const World& world, Machine& machine) : world_(world), machine_(machine), model_(world) {}

    std::optional<Failure> run(const Operation& op) {
        if (!model_.admits(op)) return Failure{"the model does not admit " + text_of(op)};
        const Machine::Outcome outcome = machine_.perform(op);
        if (!outcome.error.empty()) return Failure{outcome.error + ", by " + text_of(op), outcome.timed_out};
        if (op.kind == Kind::quiet) {
            if (auto wrong = check_queue(op); wrong.has_value()) return wrong;
            model_.apply(op);
            return check_memory(op);
        }
        if ((op.kind == Kind::wait || op.kind == Kind::poll) && outcome.is_complete)
            if (auto wrong = check(op.waits_for, op); wrong.has_value()) return wrong;
        model_.apply(op);
        if (fetched_bytes(op) == 0) return std::nullopt;
        fetching_.push_back({op.id, op.pe, op.queue});
        return outcome.is_complete ? check(op.id, op) : std::nullopt;
    }

    // A quiet of every queue that exists.
    std::optional<Failure> finish() {
        for (int pe = 0; pe < world_.npes; ++pe) {
            for (int queue = 0; queue < queue_count; ++queue) {
                if (!model_.queue_exists(pe, queue)) continue;
                Operation op;
                op.kind = Kind::quiet;
                op.pe = pe;
                op.queue = queue;
                if (auto wrong = run(op); wrong.has_value()) return wrong;
            }
        }
        return std::nullopt;
    }

private:
    // A fetching operation whose value has not been checked.
    struct Fetching {
        int id;
        int pe;
        int queue;
    };

    std::optional<Failure> check(int id, const Operation& shown_by) {
        const auto found =
            std::find_if(fetching_.begin(), fetching_.end(), [&](const Fetching& each) { return each.id == id; });
        if (found == fetching_.end()) return std::nullopt;
        fetching_.erase(found);
        const auto wrong = model_.check_fetched(id, machine_.fetched(id));
        if (!wrong.has_value()) return std::nullopt;
        return Failure{*wrong + ", shown by " + text_of(shown_by)};
    }

    std::optional<Failure> check_queue(const Operation& quiet) {
        const auto unchecked = fetching_;
        for (const Fetching& each : unchecked)
            if (each.pe == quiet.pe && each.queue == quiet.queue)
                if (auto wrong = check(each.id, quiet); wrong.has_value()) return wrong;
        return std::nullopt;
    }

    std::optional<Failure> check_memory(const Operation& quiet) {
        for (int pe = 0; pe < world_.npes; ++pe) {
            for (int region = 0; region < region_count; ++region) {
                if (!model_.region_exists(pe, region)) continue;
                const auto wrong = model_.check_region(pe, region, machine_.region(pe, region));
                if (wrong.has_value()) return Failure{*wrong + ", after " + text_of(quiet)};
            }
        }
        return std::nullopt;
    }

    const World& world_;
    Machine& machine_;
    Model model_;
    std::vector<Fetching> fetching_;
};

Sequence without(const Sequence& operations, std::size_t begin, std::size_t count) {
    Sequence out(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(begin));
    const std::size_t end = std::min(begin + count, operations.size());
    out.insert(out.end(), operations.begin() + static_cast<std::ptrdiff_t>(end), operations.end());
    return out;
}

}  // namespace

std::optional<Failure> execute(const World& world, const Sequence& operations, Machine& machine) {
    Execution execution(world, machine);
    for (const Operation& op : operations)
        if (auto wrong = execution.run(op); wrong.has_value()) return wrong;
    return execution.finish();
}

Reduced reduce(const World& world, Sequence failing, Failure failure,
               const std::function<std::optional<Failure>(const Sequence&)>& fails, int max_replays) {
    constexpr int replays_of_a_timeout = 20;
    Reduced out{std::move(failing), std::move(failure), 0};
    for (std::size_t chunk = std::max<std::size_t>(out.operations.size() / 2, 1); out.replays < max_replays;) {
        bool removed = false;
        for (std::size_t at = 0; at < out.operations.size() && out.replays < max_replays;) {
            const Sequence candidate = admitted(world, without(out.operations, at, chunk));
            const auto still = fails(candidate);
            out.replays += still.has_value() && still->timed_out ? replays_of_a_timeout : 1;
            if (!still.has_value()) {
                at += chunk;
                continue;
            }
            removed = true;
            out.operations = candidate;
            out.failure = *still;
        }
        if (chunk == 1 && !removed) break;
        chunk = std::max<std::size_t>(chunk / 2, 1);
    }
    return out;
}

}  // namespace npushmem::contract::sequence
