// A compile-time list of schedules: their table for names and sizes, and the dispatch by number.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>

#include "core/coll/barrier/schedule.hpp"

namespace npushmem::barrier {

struct AlgorithmInfo {
    std::string_view name;
    std::string_view summary;
    int (*slots)(int n);
    int max_members;
    bool has_radix;
};

template <class Algorithm>
constexpr AlgorithmInfo info_of() {
    AlgorithmInfo info{Algorithm::name, Algorithm::summary, &Algorithm::slots, std::numeric_limits<int>::max(), false};
    if constexpr (requires { Algorithm::max_members; }) info.max_members = Algorithm::max_members;
    if constexpr (requires { Algorithm::has_radix; }) info.has_radix = Algorithm::has_radix;
    return info;
}

// Position in the list; the same in every process of a job.
enum class AlgorithmId : std::size_t {};

template <class... Algorithm>
struct AlgorithmList {
    static constexpr std::size_t count = sizeof...(Algorithm);
    static constexpr std::array<AlgorithmInfo, count> table{{info_of<Algorithm>()...}};

    static constexpr const AlgorithmInfo& info(AlgorithmId id) { return table[static_cast<std::size_t>(id)]; }

    // Where an algorithm's slots begin; each has its own, so that calls with different algorithms may alternate.
    static constexpr int first_slot(AlgorithmId id, int n) {
        int slot = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(id); ++i) slot += table[i].slots(n);
        return slot;
    }

    static constexpr int slots(int n) { return first_slot(AlgorithmId{count}, n); }

    // The number of the algorithm `Wanted`, which must be one of the list.
    template <class Wanted>
    static constexpr AlgorithmId id_of() {
        std::size_t i = 0;
        (void)((std::is_same_v<Wanted, Algorithm> || (++i, false)) || ...);
        return AlgorithmId{i};
    }

    template <Fabric F>
    static Code run(AlgorithmId id, F& fabric, const BarrierCall& call) {
        std::size_t i = 0;
        Code code = Code::argument;
        (void)((i++ == static_cast<std::size_t>(id) && (code = Algorithm::run(fabric, call), true)) || ...);
        return code;
    }
};

}  // namespace npushmem::barrier
