// What the test programs share: they compare, say what differed and go on, so that all PEs still meet at every barrier;
// the exit status tells at the end.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace npushmem::api_test {

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
    // The last failure of this thread has this code, and each of these words in its message; it is cleared.
    void failed_with(std::string_view what, int code, std::initializer_list<std::string_view> words);
    // Nothing has failed since the last look.
    void no_error(std::string_view what);
    void fail(const std::string& text);

    // After init: who speaks.
    void set_pe(int pe) { pe_ = pe; }
    // 0, or 1 when something differed.
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

// The job as a program sees it.
struct Job {
    int me;
    int npes;
    [[nodiscard]] int right() const { return (me + 1) % npes; }
    [[nodiscard]] int left() const { return (me + npes - 1) % npes; }
};

// Init, the tests, finalize: the body of main.
int run_family(const char* family, const std::function<void(Checker&, const Job&)>& tests);

// A value that tells writer, form and place apart, and fits into every type without loss.
constexpr unsigned pattern(int pe, int form, std::size_t index) {
    return static_cast<unsigned>(pe * 41 + form * 17 + static_cast<int>(index % 64) * 3 + 1) % 120;
}

}  // namespace npushmem::api_test
