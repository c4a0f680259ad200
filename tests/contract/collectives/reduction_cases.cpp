// SPDX-License-Identifier: BSD-3-Clause
// Reductions and reduce-scatter of every type and operation that the library supports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"
#include "tests/contract/collectives/collectives_case.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t counts[] = {1, 100, 5000};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

// Small, so that every result is exact in every type: whatever order the library combines in.
float number(int pe, std::uint64_t i, std::uint32_t operation) {
    const auto mixed = static_cast<int>((i * 3 + static_cast<std::uint64_t>(pe) * 5) % 7);
    return static_cast<float>(operation == NPUSHMEM_COLL_PROD ? 1 + mixed % 2 : mixed + 1);
}

template <class T>
T combine(std::uint32_t operation, T a, T b) {
    if (operation == NPUSHMEM_COLL_SUM) return static_cast<T>(a + b);
    if (operation == NPUSHMEM_COLL_PROD) return static_cast<T>(a * b);
    if constexpr (!is_complex<T>) {
        if (operation == NPUSHMEM_COLL_MAX) return a < b ? b : a;
        if (operation == NPUSHMEM_COLL_MIN) return b < a ? b : a;
    }
    if constexpr (std::is_integral_v<T>) {
        if (operation == NPUSHMEM_COLL_AND) return static_cast<T>(a & b);
        if (operation == NPUSHMEM_COLL_OR) return static_cast<T>(a | b);
        return static_cast<T>(a ^ b);
    }
    return a;
}

// Element: as it is in memory. Value: as it is computed.
template <class Element, class Value = Element>
class Reductions {
public:
    Reductions(CollectivesPe& pe, std::uint64_t team, std::uint32_t type) : pe_(pe), team_(team), type_(type) {}

    void run(std::uint32_t collective, std::uint32_t operation) {
        for (const std::uint64_t count : counts)
            for (const bool in_place : {false, true}) run(collective, operation, count, in_place);
    }

private:
    static Element element(Value value) { return Element(value); }

    void run(std::uint32_t collective, std::uint32_t operation, std::uint64_t count, bool in_place) {
        const bool scatter = collective == NPUSHMEM_COLL_REDUCESCATTER;
        const std::uint64_t given = scatter ? count * static_cast<unsigned>(pe_.count()) : count;
        std::vector<Element> source(given);
        for (std::uint64_t i = 0; i < given; ++i)
            source[i] = element(static_cast<Value>(number(pe_.index(), i, operation)));
        const Element guard = element(static_cast<Value>(99));
        std::vector<Element> dest(count + 1, guard);
        Element* const into = in_place ? source.data() : dest.data();
        auto call = coll_call(collective, source.data(), into, count);
        call.operation = operation;
        call.type = type_;
        pe_.run(team_, call);
        const std::uint64_t first = scatter ? static_cast<unsigned>(pe_.index()) * count : 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            Value expected = static_cast<Value>(number(0, first + i, operation));
            for (int pe = 1; pe < pe_.count(); ++pe)
                expected = combine(operation, expected, static_cast<Value>(number(pe, first + i, operation)));
            if (!equal(into[i], expected)) {
                ADD_FAILURE() << "collective " << collective << ", operation " << operation << ", type " << type_
                              << ", " << count << " elements, in place " << in_place << ": element " << i
                              << " is wrong";
                return;
            }
        }
        EXPECT_TRUE(equal(dest[count], static_cast<Value>(99))) << "an element behind dest changed";
        for (std::uint64_t i = in_place ? count : 0; i < given; ++i)
            ASSERT_TRUE(equal(source[i], static_cast<Value>(number(pe_.index(), i, operation))))
                << "element " << i << " of the source changed: collective " << collective << ", type " << type_;
    }
    static bool equal(const Element& element, Value expected) {
        if constexpr (std::is_same_v<Element, Value>)
            return element == expected;
        else
            return static_cast<Value>(element) == expected;
    }

    CollectivesPe& pe_;
    std::uint64_t team_;
    std::uint32_t type_;
};

constexpr std::uint32_t float_types[] = {NPUSHMEM_COLL_F16, NPUSHMEM_COLL_BF16, NPUSHMEM_COLL_F32, NPUSHMEM_COLL_F64,
                                         NPUSHMEM_COLL_F80};

// Reductions of floats whose result depends on more than the operands' exact values: a NaN, and rounding.
template <class Element, class Value>
class FloatReductions {
public:
    FloatReductions(CollectivesPe& pe, std::uint64_t team, std::uint32_t type, std::uint32_t operation)
        : pe_(pe), team_(team), type_(type), operation_(operation) {}

    // Each member in turn has a NaN in every other element, the other members finite values and infinities.
    void propagate_nan() {
        for (int with_nan = 0; with_nan < pe_.count(); ++with_nan) {
            std::vector<Element> dest = reduce([&](std::uint64_t i) {
                if (i % 2 == 0 && pe_.index() == with_nan) return std::numeric_limits<Value>::quiet_NaN();
                return i % 8 == 4 ? std::numeric_limits<Value>::infinity() : static_cast<Value>(1);
            });
            for (std::uint64_t i = 0; i < elements; ++i)
                if (std::isnan(static_cast<Value>(dest[i])) != (i % 2 == 0)) {
                    ADD_FAILURE() << describe() << ": element " << i << " is " << static_cast<Value>(dest[i])
                                  << ", but PE " << with_nan << (i % 2 == 0 ? " has" : " has not") << " a NaN";
                    return;
                }
        }
    }

    void round_alike() {
        const std::vector<Element> dest = reduce([this](std::uint64_t i) { return inexact(pe_.index(), i); });
        std::uint64_t bits = 14695981039346656037U;
        constexpr std::size_t used = std::is_same_v<Element, long double> ? 10 : sizeof(Element);
        for (std::uint64_t i = 0; i < elements; ++i) {
            const auto* const bytes = reinterpret_cast<const unsigned char*>(&dest[i]);
            for (std::size_t byte = 0; byte < used; ++byte) bits = (bits ^ bytes[byte]) * 1099511628211U;
            expect_near(i, static_cast<Value>(dest[i]));
        }
        EXPECT_TRUE(pe_.all_agree(bits)) << describe() << ": the members got different bits";
    }

private:
    static constexpr std::uint64_t elements = 100;

    // The element as it is in memory; its combination is rounded, differently in different orders.
    [[nodiscard]] Value inexact(int pe, std::uint64_t i) const {
        const auto mixed = static_cast<int>((i * 7 + static_cast<std::uint64_t>(pe) * 13) % 11);
        const Value third = static_cast<Value>(1 + mixed) / 3;
        const Value value = operation_ == NPUSHMEM_COLL_PROD ? 1 + third / 8 : std::ldexp(third, mixed - 5);
        return static_cast<Value>(Element(i % 3 == 1 ? -value : value));
    }
    // Every order of rounding is allowed: each step contributes at most half a unit in the last place of the largest
    // intermediate result.
    void expect_near(std::uint64_t i, Value seen) const {
        long double exact = operation_ == NPUSHMEM_COLL_PROD ? 1 : 0;
        long double largest = exact;
        for (int pe = 0; pe < pe_.count(); ++pe) {
            const long double value = inexact(pe, i);
            exact = operation_ == NPUSHMEM_COLL_PROD ? exact * value : exact + value;
            largest = operation_ == NPUSHMEM_COLL_PROD ? std::max(largest, std::abs(exact)) : largest + std::abs(value);
        }
        const long double unit = largest * static_cast<long double>(epsilon());
        EXPECT_LE(std::abs(static_cast<long double>(seen) - exact), unit * static_cast<long double>(pe_.count()))
            << describe() << ": element " << i << " is not near the exact result";
    }
    static Value epsilon() {
        if constexpr (std::is_same_v<Element, npu::half>) return std::ldexp(Value{1}, -10);
        if constexpr (std::is_same_v<Element, npu::bfloat16>) return std::ldexp(Value{1}, -7);
        return std::numeric_limits<Value>::epsilon();
    }
    template <class Source>
    std::vector<Element> reduce(Source value) {
        std::vector<Element> source(elements);
        std::vector<Element> dest(elements);
        for (std::uint64_t i = 0; i < elements; ++i) source[i] = Element(value(i));
        auto call = coll_call(NPUSHMEM_COLL_REDUCE, source.data(), dest.data(), elements);
        call.operation = operation_;
        call.type = type_;
        pe_.run(team_, call);
        return dest;
    }
    [[nodiscard]] std::string describe() const {
        return "operation " + std::to_string(operation_) + ", type " + std::to_string(type_);
    }

    CollectivesPe& pe_;
    std::uint64_t team_;
    std::uint32_t type_;
    std::uint32_t operation_;
};

// Runs `use` on the FloatReductions of each operation from `first` on, and each type of floats, that is supported.
template <class Use>
void every_float(CollectivesPe& pe, std::uint32_t first, Use use) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (std::uint32_t operation = first; operation <= NPUSHMEM_COLL_PROD; ++operation)
        for (const std::uint32_t type : float_types) {
            if ((pe.library().supports(NPUSHMEM_COLL_REDUCE, operation) >> type & 1) == 0) continue;
            switch (type) {
                case NPUSHMEM_COLL_F16: use(FloatReductions<npu::half, float>(pe, team, type, operation)); break;
                case NPUSHMEM_COLL_BF16: use(FloatReductions<npu::bfloat16, float>(pe, team, type, operation)); break;
                case NPUSHMEM_COLL_F32: use(FloatReductions<float, float>(pe, team, type, operation)); break;
                case NPUSHMEM_COLL_F64: use(FloatReductions<double, double>(pe, team, type, operation)); break;
                default: use(FloatReductions<long double, long double>(pe, team, type, operation)); break;
            }
        }
    pe.library().destroy_team(team);
}

void propagates_nan(CollectivesPe& pe) {
    every_float(pe, NPUSHMEM_COLL_MAX, [](auto reductions) { reductions.propagate_nan(); });
}
void rounds_alike_on_every_member(CollectivesPe& pe) {
    every_float(pe, NPUSHMEM_COLL_SUM, [](auto reductions) { reductions.round_alike(); });
}

void run_type(CollectivesPe& pe, std::uint64_t team, std::uint32_t type, std::uint32_t collective,
              std::uint32_t operation) {
    const auto run = [&](auto reductions) { reductions.run(collective, operation); };
    switch (type) {
        case NPUSHMEM_COLL_I8: return run(Reductions<std::int8_t>(pe, team, type));
        case NPUSHMEM_COLL_I16: return run(Reductions<std::int16_t>(pe, team, type));
        case NPUSHMEM_COLL_I32: return run(Reductions<std::int32_t>(pe, team, type));
        case NPUSHMEM_COLL_I64: return run(Reductions<std::int64_t>(pe, team, type));
        case NPUSHMEM_COLL_U8: return run(Reductions<std::uint8_t>(pe, team, type));
        case NPUSHMEM_COLL_U16: return run(Reductions<std::uint16_t>(pe, team, type));
        case NPUSHMEM_COLL_U32: return run(Reductions<std::uint32_t>(pe, team, type));
        case NPUSHMEM_COLL_U64: return run(Reductions<std::uint64_t>(pe, team, type));
        case NPUSHMEM_COLL_F16: return run(Reductions<npu::half, float>(pe, team, type));
        case NPUSHMEM_COLL_BF16: return run(Reductions<npu::bfloat16, float>(pe, team, type));
        case NPUSHMEM_COLL_F32: return run(Reductions<float>(pe, team, type));
        case NPUSHMEM_COLL_F64: return run(Reductions<double>(pe, team, type));
        case NPUSHMEM_COLL_F80: return run(Reductions<long double>(pe, team, type));
        case NPUSHMEM_COLL_C32: return run(Reductions<std::complex<float>>(pe, team, type));
        default: return run(Reductions<std::complex<double>>(pe, team, type));
    }
}

void every_supported(CollectivesPe& pe, std::uint32_t collective) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    int supported = 0;
    for (std::uint32_t operation = 0; operation <= NPUSHMEM_COLL_PROD; ++operation)
        for (std::uint32_t type = 0; type <= NPUSHMEM_COLL_C64; ++type)
            if ((pe.library().supports(collective, operation) >> type & 1) != 0) {
                run_type(pe, team, type, collective, operation);
                ++supported;
            }
    pe.library().destroy_team(team);
    if (supported == 0 && pe.index() == 0) GTEST_SKIP() << "the library supports no such reduction";
}

void reduces_every_type(CollectivesPe& pe) { every_supported(pe, NPUSHMEM_COLL_REDUCE); }
void reduces_and_scatters_every_type(CollectivesPe& pe) { every_supported(pe, NPUSHMEM_COLL_REDUCESCATTER); }

void supports_what_exists(CollectivesPe& pe) {
    constexpr std::uint64_t integers = (1U << NPUSHMEM_COLL_F16) - 1;
    constexpr std::uint64_t complex = 1U << NPUSHMEM_COLL_C32 | 1U << NPUSHMEM_COLL_C64;
    constexpr std::uint64_t known = (1U << (NPUSHMEM_COLL_C64 + 1)) - 1;
    for (std::uint32_t collective = 0; collective <= NPUSHMEM_COLL_REDUCESCATTER; ++collective)
        for (std::uint32_t operation = 0; operation <= NPUSHMEM_COLL_PROD; ++operation) {
            const std::uint64_t set = pe.library().supports(collective, operation);
            EXPECT_TRUE(pe.all_agree(set)) << "collective " << collective << ", operation " << operation;
            EXPECT_EQ(pe.library().supports(collective, operation), set) << "another answer than before";
            const std::uint64_t possible = collective < NPUSHMEM_COLL_REDUCE ? 1
                                           : operation <= NPUSHMEM_COLL_XOR  ? integers
                                           : operation <= NPUSHMEM_COLL_MIN  ? known & ~complex
                                                                             : known;
            EXPECT_EQ(set & ~possible, 0U) << "no such types: collective " << collective << ", operation " << operation;
        }
    EXPECT_EQ(pe.library().supports(NPUSHMEM_COLL_REDUCESCATTER + 1, 0), 0U);
    EXPECT_EQ(pe.library().supports(NPUSHMEM_COLL_REDUCE, NPUSHMEM_COLL_PROD + 1), 0U);
}

}  // namespace

std::span<const CollectivesCase> collectives_reduction_cases() {
    static constexpr CollectivesCase cases[] = {
        {"supports_what_exists", "supports: the same answer on every PE and each time; unknown arguments give 0.",
         supports_what_exists},
        {"reduces_every_type", "REDUCE: every member gets all sources combined, also where dest is source.",
         reduces_every_type},
        {"reduces_and_scatters_every_type",
         "REDUCESCATTER: member i gets block i combined; in place the rest of source stays.",
         reduces_and_scatters_every_type},
        {"propagates_nan", "MAX, MIN, SUM and PROD of floats are NaN if an operand is, whichever member has it.",
         propagates_nan},
        {"rounds_alike_on_every_member",
         "SUM and PROD of floats may be rounded in any order; REDUCE gives every member the same bits.",
         rounds_alike_on_every_member}};
    return cases;
}

}  // namespace npushmem::contract
