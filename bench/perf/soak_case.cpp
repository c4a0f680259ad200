#include "bench/perf/soak_case.hpp"

#include <array>

namespace npushmem::perf {
namespace {

// Not a distribution of the library, so that a seed means the same everywhere.
std::int64_t up_to(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

template <class Value, std::size_t count>
Value one_of(std::mt19937_64& random, const std::array<Value, count>& values) {
    return values[random() % count];
}

std::int64_t random_hidden(std::mt19937_64& random) {
    static constexpr std::array<std::int64_t, 10> usual{1, 7, 16, 17, 128, 1000, 2048, 2880, 4096, 7168};
    return random() % 8 == 0 ? one_of(random, usual) : up_to(random, 1, 96);
}

}  // namespace

SoakShape soak_shape(std::uint64_t seed, std::uint64_t layer, int pes) {
    static constexpr std::array<moe::ElementType, 3> types{moe::ElementType::bfloat16, moe::ElementType::half,
                                                           moe::ElementType::float32};
    static const std::array<std::string, 3> modes{"direct", "chunked", "stream"};
    static const std::array<std::string, 4> copies{"auto", "staged", "ordinary", "streaming"};
    std::mt19937_64 random(seed * 1'000'003 + layer);
    SoakShape shape;
    Workload& w = shape.layer.workload;
    w.name = "soak";
    w.experts = static_cast<std::int32_t>(up_to(random, 1, 4 * pes));
    w.top_k = static_cast<std::int32_t>(up_to(random, 1, 6));
    w.hidden = random_hidden(random);
    // Now and then more than a chunk.
    w.tokens = static_cast<std::int32_t>(w.hidden < 100 && random() % 16 == 0 ? 300 : up_to(random, 1, 12));
    w.type = one_of(random, types);
    shape.options.mode = one_of(random, modes);
    shape.options.ring = random() % 2 == 0 ? "sender" : "receiver";
    shape.options.copy = one_of(random, copies);
    shape.options.audit = random() % 2 == 0;
    shape.capacity = static_cast<std::int64_t>(w.tokens) * w.top_k * pes;
    shape.absent = static_cast<double>(random() % 3) / 4;
    shape.crowded = random() % 4 == 0 ? 90 : 0;
    return shape;
}

void reroute(SoakShape& shape, std::mt19937_64& random) {
    CombineCase& c = shape.layer;
    const std::int64_t tokens = random() % 6 == 0 ? 0 : up_to(random, 1, c.workload.tokens);
    c.expert_ids.clear();
    c.weights.clear();
    for (std::int64_t i = 0; i < tokens * c.workload.top_k; ++i) {
        const bool none = static_cast<double>(random() % 1000) < 1000 * shape.absent;
        const bool first = random() % 100 < static_cast<std::uint64_t>(shape.crowded);
        const auto any = static_cast<std::int32_t>(up_to(random, 0, c.workload.experts - 1));
        c.expert_ids.push_back(none ? -1 : first ? 0 : any);
        c.weights.push_back(0.25F * static_cast<float>(1 + random() % 7));
    }
}

}  // namespace npushmem::perf
