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

// The same operation with one detail less.
std::vector<Operation> simpler(const Operation& op) {
    std::vector<Operation> out;
    const auto propose = [&](auto Operation::*member, auto value) {
        if (op.*member == value) return;
        out.push_back(op);
        out.back().*member = value;
    };
    if (fetched_bytes(op) == 0 && op.kind != Kind::put && op.kind != Kind::atomic && op.kind != Kind::put_signal &&
        op.kind != Kind::put_strided)
        return out;
    propose(&Operation::has_token, false);
    propose(&Operation::queue, 0);
    propose(&Operation::region, main_region);
    if (op.kind == Kind::put_signal) propose(&Operation::signal_region, main_region);
    if (op.kind == Kind::put_strided) propose(&Operation::count, op.count / 2);
    if (op.kind != Kind::atomic) propose(&Operation::bytes, op.bytes / 2);
    return out;
}

// Reduces one sequence; see `reduce`.
class Reduction {
public:
    using Fails = std::function<std::optional<Failure>(const Sequence&)>;

    Reduction(const World& world, Reduced start, const Fails& fails, int max_replays)
        : world_(world), best_(std::move(start)), fails_(fails), max_replays_(max_replays) {}

    Reduced run() {
        for (bool progress = true; progress && !is_used_up();) {
            remove_chunks();
            progress = simplify();
        }
        return best_;
    }

private:
    [[nodiscard]] bool is_used_up() const { return best_.replays >= max_replays_; }

    // Keeps the candidate if it fails too.
    bool try_candidate(const Sequence& candidate) {
        constexpr int replays_of_a_timeout = 20;
        const auto failure = fails_(candidate);
        best_.replays += failure.has_value() && failure->timed_out ? replays_of_a_timeout : 1;
        if (!failure.has_value()) return false;
        best_.operations = candidate;
        best_.failure = *failure;
        return true;
    }

    void remove_chunks() {
        for (std::size_t chunk = std::max<std::size_t>(best_.operations.size() / 2, 1); !is_used_up();) {
            bool removed = false;
            for (std::size_t at = 0; at < best_.operations.size() && !is_used_up();) {
                if (try_candidate(admitted(world_, without(best_.operations, at, chunk))))
                    removed = true;
                else
                    at += chunk;
            }
            if (chunk == 1 && !removed) return;
            chunk = std::max<std::size_t>(chunk / 2, 1);
        }
    }

    // Returns true when an operation became simpler.
    bool simplify() {
        bool any = false;
        for (std::size_t at = 0; at < best_.operations.size(); ++at) {
            for (const Operation& simple : simpler(best_.operations[at])) {
                if (is_used_up()) return any;
                Sequence candidate = best_.operations;
                candidate[at] = simple;
                if (admitted(world_, candidate).size() != candidate.size() || !try_candidate(candidate)) continue;
                any = true;
                break;
            }
        }
        return any;
    }

    const World& world_;
    Reduced best_;
    const Fails& fails_;
    int max_replays_;
};

}  // namespace

std::optional<Failure> execute(const World& world, const Sequence& operations, Machine& machine) {
    Execution execution(world, machine);
    for (const Operation& op : operations)
        if (auto wrong = execution.run(op); wrong.has_value()) return wrong;
    return execution.finish();
}

Reduced reduce(const World& world, Sequence failing, Failure failure,
               const std::function<std::optional<Failure>(const Sequence&)>& fails, int max_replays) {
    return Reduction(world, {std::move(failing), std::move(failure), 0}, fails, max_replays).run();
}

}  // namespace npushmem::contract::sequence
