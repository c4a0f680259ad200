// SPDX-License-Identifier: BSD-3-Clause
// A layer whose ranks die one after the other, by a seed: the living mask the dead and verify every byte of what the
// layer does without them.
//     masked_ranks <seed> <PEs that live at the end: 1, or 2: PE 0 and the last one>
//
// The living dispatch and combine until a call fails because of a death. A thread of each PE that the seed lets die
// kills its process after a time, wherever it is then. tests/integration/api/survive runs many such jobs.
#include <fmt/format.h>
#include <npushmem.h>
#include <npushmem/moe.h>
#include <npushmem/plugin/abi.h>
#include <npushmemx.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void complain(const std::string& what) {
    std::fputs(fmt::format("masked_ranks: PE {}: {}\n", npushmem_my_pe(), what).c_str(), stderr);
    npushmem_global_exit(3);
    std::abort();
}

void require(bool holds, const char* what) {
    if (!holds) complain(what);
}

enum class Work { done, interrupted };

// The PEs that the seed lets die.
std::vector<int> mortals;

// Only the death of such a PE may fail a call, and the report names it.
Work result() {
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    if (code == 0) return Work::done;
    if (code != NPUSHMEM_E_PEER_DEAD) complain(fmt::format("a call failed with {}: {}", code, message));
    static const std::regex names("PE ([0-9]+)[^0-9]*(?:has died|failed|dead|not complete|is lost)|PE ([0-9]+)(?:$|;)");
    const std::string report(message);
    bool names_one = false;
    for (std::sregex_iterator found(report.begin(), report.end(), names), end; found != end; ++found)
        names_one = names_one ||
                    std::ranges::find(mortals, std::atoi((found->str(1) + found->str(2)).c_str())) != mortals.end();
    if (!names_one) complain("no dead PE is named: " + report);
    npushmemx_clear_error();
    return Work::interrupted;
}

// A layer of all PEs of the job, with numbers that floats hold exactly, also their products and sums.
class MaskedLayer {
public:
    explicit MaskedLayer(std::uint64_t seed) : seed_(seed), living_(static_cast<std::size_t>(ranks_), true) {
        npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
        config.experts = experts();
        config.top_k = top_k;
        config.mode = static_cast<std::int32_t>(seed % 3);
        config.rows = static_cast<std::int32_t>(seed / 3 % 2);
        config.hidden = hidden_;
        config.max_tokens = tokens;
        config.input_type = config.output_type = NPUSHMEMX_MOE_FLOAT;
        config.audit = in_place_ ? 0 : 1;
        config.capacity = std::int64_t{tokens} * top_k * ranks_;
        require(npushmemx_moe_create(&config, &handle_) == 0, "no layer");
        if (in_place_)
            symmetric_ = npushmem_malloc(static_cast<std::size_t>(config.capacity * hidden_) * sizeof(float));
        adopt_substitutes();
    }
    MaskedLayer(const MaskedLayer&) = delete;
    MaskedLayer& operator=(const MaskedLayer&) = delete;
    ~MaskedLayer() { npushmemx_moe_destroy(handle_); }

    [[nodiscard]] double slowest_failure() const { return slowest_failure_; }
    [[nodiscard]] npushmemx_moe_t* handle() const { return handle_; }
    [[nodiscard]] const std::vector<std::int32_t>& substitutes() const { return substitutes_; }

    // Masks the PEs that are not in the team.
    Work mask(npushmem_team_t team) {
        for (int rank = 0; rank < ranks_; ++rank)
            living_[static_cast<std::size_t>(rank)] = npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, rank, team) >= 0;
        adopt_substitutes();
        const int code = npushmemx_moe_mask_ranks(handle_, team, drops() ? nullptr : substitutes_.data());
        const Work done = result();
        require(code == 0 || done == Work::interrupted, "a mask failed without a report");
        return done;
    }

    // Dispatches, runs the experts, and combines. Different salts give different tokens and routings.
    Work pass(std::uint64_t salt) {
        salt_ = salt;
        std::vector<float> in;
        std::vector<float> weights;
        std::vector<int> chosen;
        for (int token = 0; token < tokens; ++token) {
            for (int column = 0; column < hidden_; ++column) in.push_back(element(rank_, token, column));
            for (int choice = 0; choice < top_k; ++choice) {
                chosen.push_back(expert(rank_, token, choice));
                weights.push_back(weight(token, choice));
            }
        }
        void* x = nullptr;
        const bool waits = salt % 2 == 0;
        if (timed([&] {
                if (waits) return npushmemx_moe_dispatch(handle_, tokens, in.data(), chosen.data(), weights.data(), &x);
                const int started =
                    npushmemx_moe_dispatch_nbi(handle_, tokens, in.data(), chosen.data(), weights.data(), &x);
                return started == 0 ? npushmemx_moe_wait(handle_) : started;
            }) == Work::interrupted)
            return Work::interrupted;
        if (in_place_) x = copy_of(x);
        run_experts(static_cast<float*>(x));
        std::vector<float> out(static_cast<std::size_t>(tokens * hidden_));
        if (timed([&] { return npushmemx_moe_combine(handle_, x, out.data()); }) == Work::interrupted)
            return Work::interrupted;
        compare(out);
        return Work::done;
    }

private:
    static constexpr int top_k = 3;
    static constexpr int tokens = 5;

    [[nodiscard]] int experts() const { return 2 * ranks_ + 1; }  // not a multiple of the ranks
    [[nodiscard]] bool drops() const { return seed_ / 6 % 2 == 0; }
    [[nodiscard]] int rank_of(int id) const {
        for (int rank = 0, first = 0; rank < ranks_; ++rank) {
            first += experts() / ranks_ + (rank < experts() % ranks_ ? 1 : 0);
            if (id < first) return rank;
        }
        return -1;
    }
    // Of a masked expert: the next one that goes on, for every fourth expert none.
    void adopt_substitutes() {
        substitutes_.clear();
        for (int id = 0; id < experts(); ++id) {
            int substitute = id;
            while (!living_[static_cast<std::size_t>(rank_of(substitute))]) substitute = (substitute + 1) % experts();
            if (substitute != id && (drops() || id % 4 == 3)) substitute = -1;
            substitutes_.push_back(substitute);
        }
    }

    [[nodiscard]] float element(int rank, int token, int column) const {
        return static_cast<float>(rank * 64 + token * 16 + column + static_cast<int>(salt_ % 7));
    }
    [[nodiscard]] int expert(int rank, int token, int choice) const {
        return (rank * 3 + token * 5 + choice * 2 + static_cast<int>(salt_ % 11)) % experts();
    }
    static float weight(int token, int choice) { return static_cast<float>(1 + (token + choice) % 3); }

    template <class Call>
    Work timed(const Call& call) {
        const auto start = std::chrono::steady_clock::now();
        const int code = call();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        const Work done = result();
        require((code == 0) == (done == Work::done), "the code of a call and its report differ");
        if (done == Work::interrupted) slowest_failure_ = std::max(slowest_failure_, took.count());
        return done;
    }

    // In symmetric memory, also with one row per rank.
    void* copy_of(const void* x) {
        npushmemx_moe_plan_t plan;
        require(npushmemx_moe_get_plan(handle_, &plan) == 0, "no plan");
        return std::memcpy(symmetric_, x, static_cast<std::size_t>(plan.rows * hidden_) * sizeof(float));
    }

    // Expert e multiplies its rows by e + 1. The rows of each rank must be the choices of its tokens, in order.
    void run_experts(float* x) const {
        npushmemx_moe_plan_t plan;
        require(npushmemx_moe_get_plan(handle_, &plan) == 0 && plan.ranks == ranks_, "the plan has not all ranks");
        npushmemx_moe_plan_t again;
        require(npushmemx_moe_get_plan(handle_, &again) == 0 && again.offset_table == plan.offset_table &&
                    again.length_table == plan.length_table,
                "a plan does not stay valid");
        for (int fragment = 0; fragment < plan.local_experts * plan.ranks; ++fragment) {
            const int rank = fragment % plan.ranks;
            const int id = plan.first_expert + fragment / plan.ranks;
            int row = plan.offset_table[fragment];
            for (int slot = 0; living_[static_cast<std::size_t>(rank)] && slot < tokens * top_k; ++slot) {
                const int token = slot / top_k;
                if (substitutes_[static_cast<std::size_t>(expert(rank, token, slot % top_k))] != id) continue;
                require(plan.slots[row] == static_cast<std::uint32_t>(slot), "a row has another slot");
                for (int column = 0; column < hidden_; ++column) {
                    float& seen = x[row * hidden_ + column];
                    if (seen != element(rank, token, column))
                        complain(fmt::format("row {} of x, column {}: {}, not {}", row, column, seen,
                                             element(rank, token, column)));
                    seen *= static_cast<float>(id + 1);
                }
                ++row;
            }
            require(row == plan.offset_table[fragment] + plan.length_table[fragment], "a fragment has other rows");
        }
    }

    void compare(const std::vector<float>& out) const {
        for (int token = 0; token < tokens; ++token)
            for (int column = 0; column < hidden_; ++column) {
                float expected = 0;
                for (int choice = 0; choice < top_k; ++choice) {
                    const int id = substitutes_[static_cast<std::size_t>(expert(rank_, token, choice))];
                    if (id < 0) continue;
                    expected += weight(token, choice) * element(rank_, token, column) * static_cast<float>(id + 1);
                }
                const float seen = out[static_cast<std::size_t>(token * hidden_ + column)];
                if (seen != expected)
                    complain(fmt::format("token {}, column {}: {}, not {}", token, column, seen, expected));
            }
    }

    npushmemx_moe_t* handle_ = nullptr;
    void* symmetric_ = nullptr;
    const std::uint64_t seed_;
    // Rows long enough to stay in place, where all PEs map each other.
    const bool in_place_ = seed_ % 3 == NPUSHMEMX_MOE_DIRECT && seed_ % 4 != 0;
    const int hidden_ = in_place_ ? 260 : 24;
    const int ranks_ = npushmem_n_pes();
    const int rank_ = npushmem_my_pe();
    std::vector<bool> living_;
    std::vector<std::int32_t> substitutes_;  // of experts that go on, they themselves
    std::uint64_t salt_ = 0;
    double slowest_failure_ = 0;
};

void choose_mortals(std::uint64_t seed, int living) {
    mortals.resize(static_cast<std::size_t>(npushmem_n_pes()));
    std::iota(mortals.begin(), mortals.end(), 0);
    if (living > 1) std::swap(mortals[mortals.size() - 2], mortals[0]);  // PE 0 and the last one: of different hosts
    if (living == 1) std::shuffle(mortals.begin(), mortals.end(), std::mt19937_64(seed));
    mortals.resize(mortals.size() - static_cast<std::size_t>(living));
}

// Chooses some members of the team who die in this round, and arms this PE if it is one of them.
void decide_fates(std::uint64_t seed, npushmem_team_t team, std::uint64_t round) {
    std::vector<int> members;
    for (const int pe : mortals)
        if (npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, pe, team) >= 0) members.push_back(pe);
    std::mt19937_64 random(seed * 1000 + round);
    std::shuffle(members.begin(), members.end(), random);
    const std::size_t deaths = std::min<std::size_t>(members.size(), 1 + random() % 2);
    for (std::size_t i = 0; i < deaths; ++i) {
        const std::chrono::microseconds time(random() % 4000);
        if (members[i] != npushmem_my_pe()) continue;
        std::thread([time] {
            std::this_thread::sleep_for(time);
            (void)kill(getpid(), SIGKILL);
        }).detach();
    }
}

// The living agree on the number of the next pass.
Work agree(npushmem_team_t team, std::uint64_t* words, std::uint64_t& next) {
    words[0] = next;
    (void)npushmem_uint64_max_reduce(team, words + 1, words, 1);
    if (result() == Work::interrupted) return Work::interrupted;
    next = words[1] + 1;
    return Work::done;
}

void expect_refusal(int code, int expected, std::initializer_list<std::string_view> words) {
    const char* message = nullptr;
    require(npushmemx_last_error(&message) == code && code == expected, "another code");
    for (const std::string_view word : words)
        if (std::string_view(message).find(word) == std::string_view::npos)
            complain(fmt::format("'{}' lacks '{}'", message, word));
    npushmemx_clear_error();
}

// Before any death.
void check_masks_of_the_living(MaskedLayer& layer) {
    expect_refusal(npushmemx_moe_mask_ranks(nullptr, NPUSHMEM_TEAM_WORLD, nullptr), NPUSHMEM_E_ARGUMENT,
                   {"handle is NULL"});
    expect_refusal(npushmemx_moe_mask_ranks(layer.handle(), NPUSHMEM_TEAM_INVALID, nullptr), NPUSHMEM_E_ARGUMENT,
                   {"team"});
    npushmem_team_t fewer = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 1, 1, npushmem_n_pes() - 1, nullptr, 0, &fewer);
    if (fewer != NPUSHMEM_TEAM_INVALID)
        expect_refusal(npushmemx_moe_mask_ranks(layer.handle(), fewer, nullptr), NPUSHMEM_E_ARGUMENT,
                       {"PE 0, rank 0 of the layer, lives", "npushmemx_team_shrink"});
    require(layer.pass(1) == Work::done, "a pass after refusals");
    require(layer.mask(NPUSHMEM_TEAM_WORLD) == Work::done, "a mask of nobody");
    require(layer.pass(2) == Work::done, "a pass after a mask of nobody");
    npushmem_barrier_all();
    npushmem_team_destroy(fewer);
}

// After all deaths. Only a PE that gives substitutes can give wrong ones; all learn of it.
void check_wrong_substitutes(MaskedLayer& layer, npushmem_team_t team) {
    std::vector<std::int32_t> wrong = layer.substitutes();
    for (std::int32_t& substitute : wrong) substitute = static_cast<std::int32_t>(wrong.size());
    const bool first = npushmem_team_my_pe(team) == 0;
    expect_refusal(npushmemx_moe_mask_ranks(layer.handle(), team, first ? wrong.data() : nullptr), NPUSHMEM_E_ARGUMENT,
                   {"the substitute of expert"});
    npushmemx_moe_plan_t plan;
    expect_refusal(npushmemx_moe_get_plan(layer.handle(), &plan), NPUSHMEM_E_STATE,
                   {"npushmemx_moe_mask_ranks failed"});
    expect_refusal(npushmemx_moe_combine(layer.handle(), nullptr, nullptr), NPUSHMEM_E_STATE, {"repeat it"});
    require(layer.mask(team) == Work::done, "a mask after a refused one");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    npushmem_init();
    const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
    const int living = std::atoi(argv[2]);
    choose_mortals(seed, living);
    auto* const words = static_cast<std::uint64_t*>(npushmem_calloc(2, sizeof(std::uint64_t)));
    auto layer = std::make_unique<MaskedLayer>(seed);
    check_masks_of_the_living(*layer);
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    std::uint64_t passes = 0;
    std::uint64_t number = 2;
    int shrinks = 0;
    for (;;) {
        decide_fates(seed, team, number);
        constexpr std::uint64_t last_passes = 6;
        const std::uint64_t enough = npushmem_team_n_pes(team) <= living ? last_passes : ~std::uint64_t{0};
        std::uint64_t done = 0;
        while (done < enough && layer->pass(++number) == Work::done) ++done;
        passes += done;
        if (done == enough) break;
        const npushmem_team_t before = team;
        for (;;) {
            npushmem_quiet();
            npushmemx_clear_error();
            npushmem_team_t next = NPUSHMEM_TEAM_INVALID;
            if (const int code = npushmemx_team_shrink(team, &next); code != 0)
                complain(fmt::format("team_shrink failed with {}", code));
            ++shrinks;
            if (team != before) npushmem_team_destroy(team);
            team = next;
            if (agree(team, words, number) == Work::done && layer->mask(team) == Work::done) break;
        }
        if (before != NPUSHMEM_TEAM_WORLD) npushmem_team_destroy(before);
    }
    if (npushmem_team_n_pes(team) < npushmem_n_pes()) check_wrong_substitutes(*layer, team);
    require(layer->pass(++number) == Work::done, "the last pass");
    words[0] = static_cast<std::uint64_t>(1e6 * layer->slowest_failure());
    (void)npushmem_uint64_max_reduce(team, words + 1, words, 1);
    if (npushmem_team_my_pe(team) == 0) {
        std::printf("survivors: %d of %d PEs live, %d shrinks, slowest failure %.3f ms, %llu turns verified\n",
                    npushmem_team_n_pes(team), npushmem_n_pes(), shrinks, static_cast<double>(words[1]) / 1000,
                    static_cast<unsigned long long>(passes + 3));
        std::fflush(stdout);
    }
    layer.reset();
    require(result() == Work::done, "destroy");
    npushmem_finalize();
    return 0;
}
