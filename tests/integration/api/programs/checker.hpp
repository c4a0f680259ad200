// SPDX-License-Identifier: BSD-3-Clause
// Checks of the test programs. A failed check prints the difference and continues, so all PEs reach every barrier; the
// exit status reports failures.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace npushmem::api_test {

// A function that calls `FUNCTION`. The address of the function itself is the library's, also where calls are expanded.
#define NPUSHMEM_CALLS(FUNCTION) [](auto... arguments) { return FUNCTION(arguments...); }

class Checker {
public:
    explicit Checker(std::string family) : family_(std::move(family)) {}

    // `what` names the object: "int put, 3 elements, element 1".
    template <class T>
    bool equal(std::string_view what, const T& expected, const T& seen) {
        if (expected == seen) [[likely]]
            return true;
        fail(fmt::format("{}: expected {}, saw {}", what, text(expected), text(seen)));
        return false;
    }
    bool that(std::string_view what, bool holds) {
        if (!holds) fail(std::string(what));
        return holds;
    }
    // Expects this code and each of these words in the last failure of this thread, and clears it.
    void failed_with(std::string_view what, int code, std::initializer_list<std::string_view> words);
    // Expects no failure since the last check.
    void no_error(std::string_view what);
    void fail(const std::string& text);

    // After init: the PE for the messages.
    void set_pe(int pe) { pe_ = pe; }
    // The exit status: 0, or 1 after a failed check.
    [[nodiscard]] int exit_status() const { return failures_ == 0 ? 0 : 1; }

private:
    template <class T>
    static std::string text(const T& value) {
        if constexpr (std::integral<T> || std::floating_point<T>)
            return fmt::format("{}", value);
        else if constexpr (std::convertible_to<T, std::string>)
            return value;
        else
            return "other bytes";
    }

    std::string family_;
    int pe_ = -1;
    int failures_ = 0;
};

// This PE and the job.
struct Job {
    int me;
    int npes;
    [[nodiscard]] int right() const { return (me + 1) % npes; }
    [[nodiscard]] int left() const { return (me + npes - 1) % npes; }
};

// Init, the tests, finalize: the body of main.
// thread_level: NPUSHMEM_THREAD_...
int run_family(const char* family, const std::function<void(Checker&, const Job&)>& tests, int thread_level = 0);

// A value that depends on writer, form and place, and fits every type without loss.
constexpr unsigned pattern(int pe, int form, std::size_t index) {
    return static_cast<unsigned>(pe * 41 + form * 17 + static_cast<int>(index % 64) * 3 + 1) % 120;
}

}  // namespace npushmem::api_test
