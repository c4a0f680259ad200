// SPDX-License-Identifier: BSD-3-Clause
// A mixture-of-experts layer of a team, with tokens whose results a scalar reference gives exactly. Calls of the
// members have equal arguments.
#pragma once

#include <fmt/format.h>
#include <npushmem.h>
#include <npushmem/moe.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace npushmem::api_test {

class TeamLayer {
public:
    // Returns the code of npushmemx_moe_create.
    int create(npushmem_team_t team, int mode) {
        ranks_ = npushmem_team_n_pes(team);
        rank_ = npushmem_team_my_pe(team);
        npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
        config.experts = experts();
        config.top_k = top_k;
        config.mode = mode;
        config.hidden = hidden;
        config.max_tokens = tokens;
        config.input_type = config.output_type = NPUSHMEMX_MOE_FLOAT;
        config.audit = 1;
        config.capacity = std::int64_t{tokens} * top_k * ranks_;
        config.team = team;
        return npushmemx_moe_create(&config, &handle_);
    }
    void destroy() { npushmemx_moe_destroy(std::exchange(handle_, nullptr)); }

    // Dispatches, runs the experts, and combines. Returns the code of the call that failed, or 0. *wrong receives the
    // first difference from the reference, or stays empty. Different salts give different tokens and routings.
    int pass(int salt, std::string& wrong) {
        salt_ = salt;
        std::vector<float> in;
        std::vector<float> out(tokens * hidden);
        std::vector<float> weights;
        std::vector<int> chosen;
        for (int token = 0; token < tokens; ++token) {
            for (int column = 0; column < hidden; ++column) in.push_back(element(rank_, token, column));
            for (int choice = 0; choice < top_k; ++choice) {
                chosen.push_back(expert(token, choice));
                weights.push_back(weight(token, choice));
            }
        }
        void* x = nullptr;
        const int dispatched = npushmemx_moe_dispatch(handle_, tokens, in.data(), chosen.data(), weights.data(), &x);
        if (dispatched != 0) return dispatched;
        run_experts(static_cast<float*>(x), wrong);
        const int combined = npushmemx_moe_combine(handle_, x, out.data());
        if (combined == 0) compare(out, wrong);
        return combined;
    }

private:
    static constexpr int top_k = 2;
    static constexpr int hidden = 24;
    static constexpr int tokens = 5;

    // Not a multiple of the ranks.
    [[nodiscard]] int experts() const { return 2 * ranks_ + 1; }
    // Numbers that floats hold exactly, also their products and sums.
    [[nodiscard]] float element(int rank, int token, int column) const {
        return static_cast<float>(rank * 64 + token * 16 + column + salt_ % 7);
    }
    [[nodiscard]] int expert(int token, int choice) const {
        return (rank_ * 3 + token * 5 + choice * 2 + salt_ % 11) % experts();
    }
    static float weight(int token, int choice) { return static_cast<float>(1 + (token + choice) % 3); }

    // Expert e multiplies its rows by e + 1.
    void run_experts(float* x, std::string& wrong) const {
        npushmemx_moe_plan_t plan;
        (void)npushmemx_moe_get_plan(handle_, &plan);
        if (plan.ranks != ranks_) wrong = fmt::format("the plan has {} ranks, not {}", plan.ranks, ranks_);
        for (int fragment = 0; fragment < plan.local_experts * plan.ranks; ++fragment) {
            const int first = plan.offset_table[fragment];
            for (int row = first; row < first + plan.length_table[fragment]; ++row)
                for (int column = 0; column < hidden; ++column) {
                    float& seen = x[row * hidden + column];
                    const float sent =
                        element(fragment % plan.ranks, static_cast<int>(plan.slots[row]) / top_k, column);
                    if (seen != sent && wrong.empty())
                        wrong = fmt::format("row {} of x, column {}: {}, not {}", row, column, seen, sent);
                    seen *= static_cast<float>(plan.first_expert + fragment / plan.ranks + 1);
                }
        }
    }

    void compare(const std::vector<float>& out, std::string& wrong) const {
        for (int token = 0; token < tokens; ++token)
            for (int column = 0; column < hidden; ++column) {
                float expected = 0;
                for (int choice = 0; choice < top_k; ++choice)
                    expected += weight(token, choice) * element(rank_, token, column) *
                                static_cast<float>(expert(token, choice) + 1);
                const float seen = out[static_cast<std::size_t>(token * hidden + column)];
                if (seen != expected && wrong.empty())
                    wrong = fmt::format("token {}, column {}: {}, not {}", token, column, seen, expected);
            }
    }

    npushmemx_moe_t* handle_ = nullptr;
    int ranks_ = 0;
    int rank_ = 0;
    int salt_ = 0;
};

}  // namespace npushmem::api_test
