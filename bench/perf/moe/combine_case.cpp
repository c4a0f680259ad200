// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/moe/combine_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"
#include "bench/perf/moe/workloads.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {

void declare_options(CLI::App& app, CombineOptions& options) {
    app.add_option("--model", options.model,
                   "Workload by name: " + workload_names() + "; or another name with all sizes given")
        ->capture_default_str();
    app.add_option("--routing", options.routing_file,
                   "Routing file, as npushmem-perf routing writes it, or routed_experts [tokens, layers, top-k] as "
                   ".npy, whose layers "
                   "are replayed in sequence; default: generated routing");
    app.add_option("--layer", options.layer, "Only this layer of an .npy file, counted from 0")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--experts", options.experts, "Experts of the layer; default: the model's")->check(positive());
    app.add_option("--top-k", options.top_k, "Choices per token")->check(CLI::Range(1, 64));
    app.add_option("--hidden", options.hidden, "Elements of a row")->check(positive());
    app.add_option("--tokens", options.tokens, "Tokens per PE")->check(positive());
    app.add_option("--type", options.type, "Element type")
        ->check(CLI::IsMember({"bf16", "half", "float"}))
        ->capture_default_str();
    app.add_option(
           "--mode", options.mode,
           "Path of the rows: directly to their slots, or through rings, for all tokens or for 256 tokens at a time")
        ->check(CLI::IsMember({"direct", "chunked", "stream"}))
        ->capture_default_str();
    app.add_option("--ring", options.ring, "PE whose memory holds the rings of modes stream and chunked")
        ->check(CLI::IsMember({"receiver", "sender"}))
        ->capture_default_str();
    app.add_option("--rows", options.rows,
                   "Rows that travel: one for each choice of a token, or one for each PE that holds any of its experts")
        ->check(CLI::IsMember({"choice", "rank"}))
        ->capture_default_str();
    app.add_option(
           "--copy", options.copy,
           "Copy route of mode direct and of dispatch; streaming also selects how the other modes put rows into slots")
        ->check(CLI::IsMember({"auto", "staged", "ordinary", "streaming"}))
        ->capture_default_str();
    app.add_option("--zipf", options.zipf, "Skew of generated routing")->capture_default_str();
    app.add_option("--seed", options.seed, "Seed of the payload and of generated routing")->capture_default_str();
    app.add_option("--iterations", options.iterations, "Timed calls")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--warmup", options.warmup, "Untimed calls before the timed ones")
        ->check(CLI::Range(0, 1000000))
        ->capture_default_str();
    app.add_flag("--verify,!--no-verify", options.verify, "Compare every output byte with the reference (default)");
    app.add_flag("--audit", options.audit, "Also count the rows put into every slot (slow)");
    app.add_option("--csv", options.csv, "Write every sample to this file");
    app.add_option("--svg", options.svg, "Draw the medians into this file");
}

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

// The heap holds the receive buffers. The host's memory also holds x, its two copies for the baseline and for the
// sender's plans, and a reserve for skew.
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

// Takes sizes from the file if neither the model nor an option gives them.
Result<moe::Routing> read_file(CombineCase& c, const CombineOptions& options, const JobResources& resources) {
    auto routing =
        moe::read_routing_file(options.routing_file, {c.workload.experts, resources.pes, options.layer.value_or(0)});
    if (!routing.ok()) return routing;
    if (Status status = check_file(routing.value(), c.workload, options); !status.ok()) return status;
    c.workload.experts = routing.value().experts;
    c.workload.top_k = routing.value().top_k;
    const std::int32_t tokens = moe::max_tokens_per_rank(routing.value());
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
