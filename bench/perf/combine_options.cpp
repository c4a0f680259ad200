#include "bench/perf/combine_options.hpp"

#include "bench/perf/positive.hpp"
#include "bench/perf/workloads.hpp"

namespace npushmem::perf {

void declare_options(CLI::App& app, CombineOptions& options) {
    app.add_option("--model", options.model,
                   "Workload by name: " + workload_names() + "; or a name of your own with all sizes")
        ->capture_default_str();
    app.add_option("--routing", options.routing_file, "Routing file (format: bench/perf/README.md); absent: generated");
    app.add_option("--experts", options.experts, "Experts of the layer, instead of the model's")->check(positive());
    app.add_option("--top-k", options.top_k, "Choices per token")->check(CLI::Range(1, 64));
    app.add_option("--hidden", options.hidden, "Elements of a row")->check(positive());
    app.add_option("--tokens", options.tokens, "Tokens per PE")->check(positive());
    app.add_option("--type", options.type, "Element type")
        ->check(CLI::IsMember({"bf16", "half", "float"}))
        ->capture_default_str();
    app.add_option(
           "--mode", options.mode,
           "How rows travel back: straight to their slots, or through rings, all at once or 256 tokens at a time")
        ->check(CLI::IsMember({"direct", "chunked", "stream"}))
        ->capture_default_str();
    app.add_option("--ring", options.ring, "In whose memory the rings of modes stream and chunked lie")
        ->check(CLI::IsMember({"receiver", "sender"}))
        ->capture_default_str();
    app.add_option("--copy", options.copy, "How rows are copied in mode direct, and by dispatch")
        ->check(CLI::IsMember({"auto", "staged", "ordinary", "streaming"}))
        ->capture_default_str();
    app.add_option("--zipf", options.zipf, "Skew of generated routing")->capture_default_str();
    app.add_option("--seed", options.seed, "Seed of the payload and of generated routing")->capture_default_str();
    app.add_option("--iterations", options.iterations, "Timed calls")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--warmup", options.warmup, "Calls before")->check(CLI::Range(0, 1000000))->capture_default_str();
    app.add_flag("--verify,!--no-verify", options.verify, "Compare every output byte with the reference (default)");
    app.add_flag("--audit", options.audit, "Also count the rows put into every slot (slow)");
    app.add_option("--csv", options.csv, "Write every sample to this file");
    app.add_option("--svg", options.svg, "Draw the medians into this file");
}

}  // namespace npushmem::perf
