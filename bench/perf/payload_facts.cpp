#include "bench/perf/payload_facts.hpp"

#include <numeric>

namespace npushmem::perf {

Result<PayloadFacts> gather_facts(const Job& job, const CombineCase& c, std::int64_t rows) {
    auto all = job.allgather({static_cast<double>(rows), static_cast<double>(c.own_tokens())});
    if (!all.ok()) return all.status();
    PayloadFacts facts;
    for (std::size_t i = 0; i < all.value().size(); i += 2) {
        facts.rows.push_back(all.value()[i]);
        facts.tokens += all.value()[i + 1];
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

}  // namespace npushmem::perf
