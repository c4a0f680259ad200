#include "bench/perf/combine_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/moe/routing_file.hpp"
#include "core/moe/routing_generator.hpp"

namespace npushmem::perf {
namespace {

moe::ElementType type_of(const std::string& name) {
    if (name == "half") return moe::ElementType::half;
    return name == "float" ? moe::ElementType::float32 : moe::ElementType::bfloat16;
}

// Sizes that an option or a routing file gives replace the model's.
template <class Value, class Given>
void replace(Value& value, const std::optional<Given>& given) {
    if (given) value = *given;
}

Result<Workload> sizes_of(const CombineOptions& options) {
    const Workload* known = find_workload(options.model);
    Workload workload = known != nullptr ? *known : Workload{options.model};
    replace(workload.experts, options.experts);
    replace(workload.top_k, options.top_k);
    replace(workload.hidden, options.hidden);
    replace(workload.tokens, options.tokens);
    workload.type = type_of(options.type);
    if (options.experts && known != nullptr && *options.experts != known->experts) {
        workload.groups = workload.groups_per_token = 1;
    }
    return workload;
}

Status check_sizes(const Workload& workload) {
    if (workload.experts > 0 && workload.top_k > 0 && workload.hidden > 0 && workload.tokens > 0) return {};
    return {Code::argument,
            fmt::format("'{}' is no known model ({}); for another give --experts, --top-k, --hidden and "
                        "--tokens",
                        workload.name, workload_names())};
}

Status check_file(const moe::Routing& routing, const Workload& workload, const CombineOptions& options) {
    const bool fits = (workload.experts == 0 || routing.experts == workload.experts) &&
                      (workload.top_k == 0 || routing.top_k == workload.top_k);
    if (fits) return {};
    return {Code::argument,
            fmt::format("routing file '{}' has {} experts and top_k {}, but model '{}' has {} and {}; use "
                        "--model {} or another file",
                        options.routing_file, routing.experts, routing.top_k, workload.name, workload.experts,
                        workload.top_k, routing.model)};
}

Result<moe::Routing> generated(const Workload& workload, const CombineOptions& options, int pes) {
    moe::GeneratorOptions generator = generator_of(workload);
    generator.ranks = pes;
    generator.zipf = options.zipf;
    generator.seed = options.seed;
    return moe::generate_routing(generator);
}

void record_rank_adjustment(CombineCase& c, int pes) {
    const Workload& w = c.workload;
    if (w.ranks == 0 || w.ranks == pes) return;
    c.adjustments.push_back(fmt::format("{} stands for {} PEs; here are {}, so a PE holds {} experts instead of {}",
                                        w.name, w.ranks, pes, (w.experts + pes - 1) / pes,
                                        (w.experts + w.ranks - 1) / w.ranks));
}

void record_file_adjustment(CombineCase& c, int file_ranks, int pes) {
    if (file_ranks == pes) return;
    c.adjustments.push_back(
        file_ranks > pes
            ? fmt::format("the routing file has {} ranks; the tokens of the first {} are used", file_ranks, pes)
            : fmt::format("the routing file has {} ranks; PE p uses the tokens of rank p modulo {}", file_ranks,
                          file_ranks));
}

// The receive buffers in the heap; in the host's memory besides them x, its two copies for the baseline and for the
// sender's plans, and skew.
std::int32_t fitting_tokens(const CombineCase& c, const JobResources& resources) {
    const auto token = static_cast<std::uint64_t>((c.row_bytes() + 64) * c.workload.top_k);
    const auto buffers = static_cast<std::uint64_t>(resources.receive_buffers);
    std::uint64_t most = resources.heap_bytes * 9 / 10 / (buffers * token);
    if (resources.memory_bytes > 0) {
        most = std::min(most, resources.memory_bytes * 6 / 10 / static_cast<std::uint64_t>(resources.pes) /
                                  ((buffers + 6) * token));
    }
    return static_cast<std::int32_t>(std::min<std::uint64_t>(most, static_cast<std::uint64_t>(c.workload.tokens)));
}

Status fit_tokens(CombineCase& c, const JobResources& resources) {
    const std::int32_t fitting = fitting_tokens(c, resources);
    if (fitting >= c.workload.tokens) return {};
    if (fitting < 1) {
        return {Code::memory,
                fmt::format("not even one token of {} rows of {} bytes fits; raise NPUSHMEM_SYMMETRIC_SIZE",
                            c.workload.top_k, c.row_bytes())};
    }
    c.adjustments.push_back(
        fmt::format("{} tokens per PE instead of {}: what the symmetric heap ({} MB free) and the memory of "
                    "this host hold",
                    fitting, c.workload.tokens, resources.heap_bytes >> 20));
    c.workload.tokens = fitting;
    return {};
}

void take_own_tokens(CombineCase& c, const moe::Routing& routing, const JobResources& resources) {
    const auto rank = static_cast<std::size_t>(resources.pe % routing.ranks());
    const std::size_t most = static_cast<std::size_t>(c.workload.tokens) * static_cast<std::size_t>(c.workload.top_k);
    const std::size_t count = std::min(routing.expert_ids[rank].size(), most);
    c.expert_ids.assign(routing.expert_ids[rank].begin(),
                        routing.expert_ids[rank].begin() + static_cast<std::ptrdiff_t>(count));
    c.weights.assign(routing.weights[rank].begin(), routing.weights[rank].begin() + static_cast<std::ptrdiff_t>(count));
}

std::int32_t max_tokens_per_rank(const moe::Routing& routing) {
    std::size_t most = 0;
    for (const auto& ids : routing.expert_ids) most = std::max(most, ids.size());
    return static_cast<std::int32_t>(most / static_cast<std::size_t>(routing.top_k));
}

// Sizes from the file where neither model nor option has them.
Result<moe::Routing> read_file(CombineCase& c, const CombineOptions& options, const JobResources& resources) {
    auto routing = moe::read_routing_file(options.routing_file);
    if (!routing.ok()) return routing;
    if (Status status = check_file(routing.value(), c.workload, options); !status.ok()) return status;
    c.workload.experts = routing.value().experts;
    c.workload.top_k = routing.value().top_k;
    const std::int32_t tokens = max_tokens_per_rank(routing.value());
    c.workload.tokens = options.tokens ? std::min(tokens, *options.tokens) : tokens;
    record_file_adjustment(c, routing.value().ranks(), resources.pes);
    return routing;
}

}  // namespace

Result<CombineCase> make_combine_case(const CombineOptions& options, const JobResources& resources) {
    auto sizes = sizes_of(options);
    if (!sizes.ok()) return sizes.status();
    CombineCase c;
    c.workload = std::move(sizes).value();
    Result<moe::Routing> routing = moe::Routing{};
    if (!options.routing_file.empty()) {
        routing = read_file(c, options, resources);
        if (!routing.ok()) return routing.status();
    }
    if (Status status = check_sizes(c.workload); !status.ok()) return status;
    if (Status status = fit_tokens(c, resources); !status.ok()) return status;
    if (options.routing_file.empty()) routing = generated(c.workload, options, resources.pes);
    if (!routing.ok()) return routing.status();
    record_rank_adjustment(c, resources.pes);
    c.routing_origin = routing.value().origin;
    take_own_tokens(c, routing.value(), resources);
    return c;
}

}  // namespace npushmem::perf
