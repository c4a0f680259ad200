// SPDX-License-Identifier: BSD-3-Clause
// Atomics: for every type and operation the returned value, the stored value and the adjacent words; then operations
// of all PEs on one word.
#include <limits>
#include <type_traits>
#include <vector>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/atomic_forms.hpp"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// Arithmetic of the operations, wrapping as two's complement does.
template <class T>
T sum(T a, T b) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}

template <class T>
T number(int small) {
    return static_cast<T>(small);
}

// The object of one writer, between two words of the same type that must stay unchanged.
template <class T>
class AtomicTest {
public:
    AtomicTest(Checker& check, const Job& job, const AtomicForms<T>& forms, T* cells, int peer)
        : check_(check), forms_(forms), cell_(cells + 3 * job.me + 1), peer_(peer) {}

    void run() {
        put_neighbours();
        set_and_fetch();
        swap();
        if constexpr (std::is_integral_v<T>) {
            compare_swap();
            add();
            bits();
        } else {
            floating_add();
        }
        look_at_neighbours();
        check_.no_error(forms_.name);
    }

private:
    static constexpr int beside = 77;

    std::string what(const char* operation) const { return forms_.name + " " + operation; }
    // Only quiet orders a set before later operations.
    void start_with(T value) {
        forms_.set(cell_, value, peer_);
        npushmem_quiet();
    }
    void holds(const char* operation, T expected) {
        check_.equal(what(operation) + ", stored", expected, forms_.fetch(cell_, peer_));
    }

    void put_neighbours() {
        forms_.set(cell_ - 1, number<T>(beside), peer_);
        forms_.set(cell_ + 1, number<T>(beside), peer_);
    }
    void look_at_neighbours() {
        check_.equal(what("word before"), number<T>(beside), forms_.fetch(cell_ - 1, peer_));
        check_.equal(what("word behind"), number<T>(beside), forms_.fetch(cell_ + 1, peer_));
    }

    void set_and_fetch() {
        for (const T value :
             {number<T>(0), number<T>(5), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()}) {
            start_with(value);
            holds("set", value);
            if (forms_.fetch_nbi == nullptr) continue;
            T later = number<T>(1);
            forms_.fetch_nbi(&later, cell_, peer_);
            npushmem_quiet();
            check_.equal(what("fetch_nbi"), value, later);
        }
    }

    // An operation that returns the old value, in both forms.
    void fetching(const char* operation, const Fetching<T>& form, T initial, T operand, T result) {
        if (form.now == nullptr) return;
        start_with(initial);
        check_.equal(what(operation) + ", returned", initial, form.now(cell_, operand, peer_));
        holds(operation, result);
        start_with(initial);
        T later = number<T>(1);
        form.later(&later, cell_, operand, peer_);
        npushmem_quiet();
        check_.equal(what(operation) + "_nbi, returned", initial, later);
        holds(operation, result);
    }
    void updating(const char* operation, typename AtomicForms<T>::Update form, T initial, T operand, T result) {
        if (form == nullptr) return;
        start_with(initial);
        form(cell_, operand, peer_);
        npushmem_quiet();
        holds(operation, result);
    }

    void floating_add() {
        constexpr T large = std::numeric_limits<T>::max();
        for (const T initial : {T{0}, T{-0.0}, T{1.5}, large, -std::numeric_limits<T>::denorm_min()})
            for (const T operand : {T{0.25}, T{-1.5}, large}) {
                updating("add", forms_.add, initial, operand, initial + operand);
                fetching("fetch_add", forms_.fetch_add, initial, operand, initial + operand);
            }
        if (forms_.add == nullptr) return;
        start_with(std::numeric_limits<T>::quiet_NaN());
        const T old = forms_.fetch_add.now(cell_, 1, peer_);
        const T stored = forms_.fetch(cell_, peer_);
        check_.that(what("add to a number that is none"), old != old && stored != stored);
    }

    void swap() {
        if (forms_.swap.now == nullptr) return;
        fetching("swap", forms_.swap, number<T>(3), number<T>(9), number<T>(9));
        fetching("swap", forms_.swap, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(),
                 std::numeric_limits<T>::max());
    }

    void compare_swap() {
        if (forms_.compare_swap == nullptr) return;
        const T large = std::numeric_limits<T>::max();
        compare_swap(number<T>(4), number<T>(4), large, true);
        compare_swap(number<T>(4), number<T>(5), large, false);
        compare_swap(static_cast<T>(-1), static_cast<T>(-1), number<T>(0), true);
    }
    void compare_swap(T initial, T condition, T value, bool matches) {
        start_with(initial);
        check_.equal(what("compare_swap, returned"), initial, forms_.compare_swap(cell_, condition, value, peer_));
        holds("compare_swap", matches ? value : initial);
        start_with(initial);
        T later = number<T>(1);
        forms_.compare_swap_nbi(&later, cell_, condition, value, peer_);
        npushmem_quiet();
        check_.equal(what("compare_swap_nbi, returned"), initial, later);
        holds("compare_swap_nbi", matches ? value : initial);
    }

    void add() {
        if (forms_.inc == nullptr) return;
        const T large = std::numeric_limits<T>::max();
        for (const T initial : {number<T>(0), static_cast<T>(-1), large}) {
            start_with(initial);
            forms_.inc(cell_, peer_);
            npushmem_quiet();
            holds("inc", sum(initial, number<T>(1)));
            start_with(initial);
            check_.equal(what("fetch_inc, returned"), initial, forms_.fetch_inc(cell_, peer_));
            holds("fetch_inc", sum(initial, number<T>(1)));
            start_with(initial);
            T later = number<T>(1);
            forms_.fetch_inc_nbi(&later, cell_, peer_);
            npushmem_quiet();
            check_.equal(what("fetch_inc_nbi, returned"), initial, later);
            holds("fetch_inc_nbi", sum(initial, number<T>(1)));
            for (const T operand : {number<T>(6), static_cast<T>(-7), large}) {
                updating("add", forms_.add, initial, operand, sum(initial, operand));
                fetching("fetch_add", forms_.fetch_add, initial, operand, sum(initial, operand));
            }
        }
    }

    void bits() {
        for (const T initial : {static_cast<T>(0x5a), static_cast<T>(~0x33), std::numeric_limits<T>::lowest()})
            for (const T operand : {static_cast<T>(0x0f), static_cast<T>(-1)}) {
                const auto both = static_cast<T>(initial & operand);
                const auto either = static_cast<T>(initial | operand);
                const auto one = static_cast<T>(initial ^ operand);
                updating("and", forms_.bit_and, initial, operand, both);
                updating("or", forms_.bit_or, initial, operand, either);
                updating("xor", forms_.bit_xor, initial, operand, one);
                fetching("fetch_and", forms_.fetch_and, initial, operand, both);
                fetching("fetch_or", forms_.fetch_or, initial, operand, either);
                fetching("fetch_xor", forms_.fetch_xor, initial, operand, one);
            }
    }

    Checker& check_;
    const AtomicForms<T>& forms_;
    T* cell_;
    int peer_;
};

template <class T>
void test_type(Checker& check, const Job& job, const AtomicForms<T>& forms, void* memory) {
    auto* cells = static_cast<T*>(memory);
    AtomicTest<T>(check, job, forms, cells, job.right()).run();
    npushmem_barrier_all();
    AtomicTest<T>(check, job, forms, cells, job.me).run();
    npushmem_barrier_all();
}

// Exactly one PE fetches each value: each PE marks its own.
template <class T>
void test_tickets(Checker& check, const Job& job, T (*take)(T*, int), const char* name) {
    constexpr int each = 60;
    const int total = each * job.npes;
    auto* counter = static_cast<T*>(npushmem_calloc(1, sizeof(T)));
    auto* taken = static_cast<unsigned*>(npushmem_calloc(static_cast<std::size_t>(total), sizeof(unsigned)));
    T last = 0;
    for (int i = 0; i < each; ++i) {
        const T ticket = take(counter, 0);
        check.that(fmt::format("{}: ticket {} is not above {}, this PE's last one", name, ticket, last),
                   i == 0 || ticket > last);
        if (check.that(fmt::format("{}: ticket {} of {}", name, ticket, total),
                       ticket >= 0 && ticket < static_cast<T>(total)))
            npushmem_uint_atomic_inc(taken + ticket, 0);
        last = ticket;
    }
    npushmem_barrier_all();
    if (job.me == 0)
        for (int i = 0; i < total; ++i)
            check.equal(fmt::format("{}: times ticket {} was taken", name, i), 1U, taken[i]);
    if (job.me == 0) check.equal(fmt::format("{}: counter at the end", name), static_cast<T>(total), *counter);
    npushmem_barrier_all();
    npushmem_free(taken);
    npushmem_free(counter);
}

// Operations of different kinds on one word: each PE owns a bit and a part of the sum.
void test_mixed(Checker& check, const Job& job) {
    auto* words = static_cast<std::uint64_t*>(npushmem_calloc(4, sizeof(std::uint64_t)));
    const std::uint64_t bit = std::uint64_t{1} << job.me;
    for (int i = 0; i < 40; ++i) {
        npushmem_uint64_atomic_add(words, 3, 0);
        npushmem_uint64_atomic_or(words + 1, bit, 0);
        npushmem_uint64_atomic_xor(words + 2, bit, 0);
        npushmem_signal_add(words + 3, 5, 0);
    }
    npushmem_uint64_atomic_xor(words + 2, bit, 0);
    npushmem_barrier_all();
    if (job.me == 0) {
        const std::uint64_t all = (std::uint64_t{1} << job.npes) - 1;
        const auto pes = static_cast<std::uint64_t>(job.npes);
        check.equal("adds of all PEs", 120 * pes, words[0]);
        check.equal("ors of all PEs", all, words[1]);
        check.equal("xors of all PEs", all, words[2]);
        check.equal("signal_adds of all PEs", 200 * pes, words[3]);
    }
    npushmem_barrier_all();
    npushmem_free(words);
}

// Additions of all PEs to one number; every sum is exact, so that their order does not matter.
template <class T>
void test_sums(Checker& check, const Job& job, void (*add)(T*, T, int), T (*fetch_add)(T*, T, int),
               void (*add_on)(npushmem_ctx_t, T*, T, int)) {
    constexpr int each = 40;
    auto* sum = static_cast<T*>(npushmem_calloc(1, sizeof(T)));
    T last = -1;
    for (int i = 0; i < each; ++i) {
        add(sum, T(0.5), 0);
        const T before = fetch_add(sum, T(1), 0);
        check.that(fmt::format("the sum {} is above {}", before, last), before > last);
        last = before;
        add_on(NPUSHMEM_CTX_DEFAULT, sum, T(0.25), 0);
    }
    npushmem_barrier_all();
    if (job.me == 0) check.equal("floating-point additions of all PEs", T(1.75) * T(each * job.npes), *sum);
    npushmem_barrier_all();
    npushmem_free(sum);
}

// A lock made of compare_swap around a plain counter.
void test_lock(Checker& check, const Job& job) {
    constexpr int each = 10;
    const int home = job.npes - 1;
    auto* lock = static_cast<int*>(npushmem_calloc(2, sizeof(int)));
    int* counter = lock + 1;
    for (int i = 0; i < each; ++i) {
        while (npushmem_int_atomic_compare_swap(lock, 0, job.me + 1, home) != 0) {
        }
        npushmem_int_p(counter, npushmem_int_g(counter, home) + 1, home);
        npushmem_quiet();
        check.equal("the lock's holder", job.me + 1, npushmem_int_atomic_swap(lock, 0, home));
    }
    npushmem_barrier_all();
    if (job.me == home) check.equal("increments under the lock", each * job.npes, *counter);
    npushmem_barrier_all();
    npushmem_free(lock);
}

void test_atomics(Checker& check, const Job& job) {
    void* cells = npushmem_malloc(static_cast<std::size_t>(job.npes) * 3 * sizeof(std::uint64_t));
    if (!check.that("memory", cells != nullptr)) return;
    for_each_atomic_type([&](const auto& forms) { test_type(check, job, forms, cells); });
    npushmem_free(cells);
    test_tickets<long>(check, job, npushmem_long_atomic_fetch_inc, "long fetch_inc");
    test_tickets<unsigned>(
        check, job, [](unsigned* word, int pe) { return npushmem_uint_atomic_fetch_add(word, 1U, pe); },
        "uint fetch_add");
    test_sums<float>(check, job, npushmemx_float_atomic_add, npushmemx_float_atomic_fetch_add,
                     npushmemx_ctx_float_atomic_add);
    test_sums<double>(check, job, npushmemx_double_atomic_add, npushmemx_double_atomic_fetch_add,
                      npushmemx_ctx_double_atomic_add);
    test_mixed(check, job);
    test_lock(check, job);
    check.no_error("contended atomics");
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("atomics", npushmem::api_test::test_atomics); }
