// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>

#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"

namespace npushmem::moe {

namespace {

using ::testing::HasSubstr;

GeneratorOptions grouped() {
    GeneratorOptions options;
    options.experts = 64;
    options.groups = 8;
    options.groups_per_token = 2;
    options.top_k = 6;
    options.ranks = 3;
    options.tokens = 50;
    options.zipf = 1.0;
    return options;
}

TEST(RoutingGenerator, TokensChooseDistinctExpertsOfAFewGroups) {
    const Routing routing = generate_routing(grouped()).value();
    ASSERT_EQ(routing.ranks(), 3);
    for (const auto& ids : routing.expert_ids) {
        ASSERT_EQ(ids.size(), 300U);
        for (std::size_t token = 0; token < 50; ++token) {
            std::set<std::int32_t> experts(ids.begin() + token * 6, ids.begin() + token * 6 + 6);
            std::set<std::int32_t> groups;
            for (const std::int32_t e : experts) groups.insert(e / 8);
            EXPECT_EQ(experts.size(), 6U);
            EXPECT_LE(groups.size(), 2U);
        }
    }
}

TEST(RoutingGenerator, WeightsOfATokenAddUpExactly) {
    const Routing routing = generate_routing(grouped()).value();
    for (const auto& weights : routing.weights) {
        for (std::size_t token = 0; token < 50; ++token) {
            EXPECT_EQ(std::accumulate(weights.begin() + token * 6, weights.begin() + token * 6 + 6, 0.0F), 2.5F);
        }
    }
}

TEST(RoutingGenerator, IsDeterminedByTheSeed) {
    GeneratorOptions options = grouped();
    const Routing a = generate_routing(options).value();
    EXPECT_EQ(generate_routing(options).value().expert_ids, a.expert_ids);
    options.seed = 2;
    EXPECT_NE(generate_routing(options).value().expert_ids, a.expert_ids);
}

TEST(RoutingGenerator, ZipfSkewsAndUniformDoesNot) {
    const auto hottest = [](double zipf) {
        GeneratorOptions options = grouped();
        options.groups = options.groups_per_token = 1;
        options.zipf = zipf;
        std::vector<int> load(64);
        const Routing routing = generate_routing(options).value();
        for (const auto& ids : routing.expert_ids) {
            for (const std::int32_t id : ids) ++load[static_cast<std::size_t>(id)];
        }
        return *std::ranges::max_element(load);
    };
    EXPECT_GT(hottest(1.4), 2 * hottest(0.0));
}

TEST(RoutingGenerator, DroppedChoicesAreMinusOne) {
    GeneratorOptions options = grouped();
    options.dropped = 1.0;
    const Routing routing = generate_routing(options).value();
    for (const auto& ids : routing.expert_ids) EXPECT_THAT(ids, ::testing::Each(no_expert));
}

TEST(RoutingGenerator, RecordsThatTheRoutingIsGenerated) {
    EXPECT_THAT(generate_routing(grouped()).value().origin, HasSubstr("generated, not recorded"));
}

// The shipped file equals the one that its "origin" describes, byte for byte.
TEST(RoutingGenerator, ReproducesTheShippedFile) {
    GeneratorOptions options;
    options.model = "deepseek-v3-decode";
    options.experts = 256;
    options.groups = 8;
    options.groups_per_token = 4;
    options.top_k = 8;
    options.ranks = 8;
    options.tokens = 128;
    options.zipf = 1.0;
    options.seed = 20251;
    std::ifstream file(NPUSHMEM_TEST_DATA_DIR "/routing/deepseek-v3-decode-8x128.json", std::ios::binary);
    const std::string shipped{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(routing_text(generate_routing(options).value(), generated_weight_unit), shipped);
}

TEST(RoutingGenerator, RefusesImpossibleOptions) {
    GeneratorOptions options = grouped();
    options.top_k = 17;
    EXPECT_THAT(generate_routing(options).status().message(), HasSubstr("top_k 17"));
    options = grouped();
    options.groups = 7;
    EXPECT_THAT(generate_routing(options).status().message(), HasSubstr("equal groups"));
    options = grouped();
    options.groups_per_token = 9;
    EXPECT_THAT(generate_routing(options).status().message(), HasSubstr("9 of 8"));
    options = grouped();
    options.zipf = std::nan("");
    EXPECT_FALSE(generate_routing(options).ok());
}

}  // namespace

}  // namespace npushmem::moe
