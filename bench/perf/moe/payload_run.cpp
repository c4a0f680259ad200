// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/payload_run.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "bench/perf/moe/copies.hpp"

namespace npushmem::perf {

Result<PayloadFacts> gather_facts(const Job& job, const CombineCase& c, std::int64_t rows, std::int64_t sent_rows) {
    auto all =
        job.allgather({static_cast<double>(rows), static_cast<double>(c.own_tokens()), static_cast<double>(sent_rows)});
    if (!all.ok()) return all.status();
    PayloadFacts facts;
    for (std::size_t i = 0; i < all.value().size(); i += 3) {
        facts.rows.push_back(all.value()[i]);
        facts.tokens += all.value()[i + 1];
        facts.sent_rows += all.value()[i + 2];
    }
    facts.pes = job.pes();
    const double sum = std::accumulate(facts.rows.begin(), facts.rows.end(), 0.0);
    facts.payload_bytes = sum * static_cast<double>(c.row_bytes());
    return facts;
}

Result<std::optional<PeDifference>> lowest_pe_difference(const Job& job, const std::optional<Difference>& own) {
    const Difference d = own.value_or(Difference{});
    auto all = job.allgather(
        {own ? 1.0 : 0.0, static_cast<double>(d.token), static_cast<double>(d.column), d.expected, d.seen});
    if (!all.ok()) return all.status();
    for (int pe = 0; pe < job.pes(); ++pe) {
        const double* v = all.value().data() + static_cast<std::ptrdiff_t>(pe) * 5;
        if (v[0] == 0) continue;
        const Difference found{static_cast<std::int64_t>(v[1]), static_cast<std::int64_t>(v[2]),
                               static_cast<float>(v[3]), static_cast<float>(v[4])};
        return std::optional(PeDifference{pe, found});
    }
    return std::optional<PeDifference>();
}

Status PayloadRun::count(PayloadResult& result, const CombineCase& c, std::int64_t rows, std::int64_t sent_rows,
                         std::int32_t copy) const {
    auto facts = gather_facts(job_, c, rows, sent_rows);
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
    for (const auto& [each, store] : {std::pair{&result.ordinary, &CopyBaseline::ordinary},
                                      std::pair{&result.streaming, &CopyBaseline::streaming}}) {
        const Operation operation = [&copy, store] { return (copy.*store)(); };
        if (Status timed = time(*each, operation); !timed.ok()) return timed;
        const auto row = time_back_to_back(job_, iterations_, operation);
        if (!row.ok()) return row.status();
        const double before = result.copy_processors;
        const double seconds = row.value().processor_seconds;
        result.copy_processors = before == 0 ? seconds : std::min(before, seconds);
    }
    return {};
}

}  // namespace npushmem::perf
