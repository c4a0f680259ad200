#include "bench/perf/payload_run.hpp"

#include "bench/perf/copy_baseline.hpp"

namespace npushmem::perf {

Status PayloadRun::count(PayloadResult& result, const CombineCase& c, std::int64_t rows, std::int32_t copy) const {
    auto facts = gather_facts(job_, c, rows);
    if (!facts.ok()) return facts.status();
    static_cast<PayloadFacts&>(result) = std::move(facts).value();
    result.copy = copy;
    return {};
}

Status PayloadRun::share(PayloadResult& result, const std::optional<Difference>& own) const {
    auto found = lowest_pe_difference(job_, own);
    if (!found.ok()) return found.status();
    if (!result.difference) result.difference = found.value();
    return {};
}

Status PayloadRun::time(std::vector<double>& each, const Operation& operation) const {
    auto timed = time_each(job_, repeat_, operation);
    if (!timed.ok()) return timed.status();
    each = std::move(timed).value();
    return {};
}

Status PayloadRun::time_calls(PayloadResult& result, std::vector<double>& each, const Operation& operation) const {
    if (Status timed = time(each, operation); !timed.ok()) return timed;
    auto back_to_back = time_back_to_back(job_, iterations_, operation);
    if (back_to_back.ok()) result.back_to_back = back_to_back.value();
    return back_to_back.status();
}

Status PayloadRun::time_copies(PayloadResult& result, const std::byte* source, std::size_t bytes) const {
    CopyBaseline copy(source, bytes);
    Status timed = time(result.ordinary, [&] { return copy.ordinary(); });
    return timed.ok() ? time(result.streaming, [&] { return copy.streaming(); }) : timed;
}

}  // namespace npushmem::perf
