// SPDX-License-Identifier: BSD-3-Clause
// Errors as values: a code that names what the caller must rebuild, and a message written by the first function that
// knows the cause. Data paths return a bare Code; set-up returns Status or Result<T>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "npushmem/plugin/abi.h"

namespace npushmem {

enum class [[nodiscard]] Code : std::int32_t{
    ok = NPUSHMEM_OK,
    again = NPUSHMEM_AGAIN,
    argument = NPUSHMEM_E_ARGUMENT,
    range = NPUSHMEM_E_RANGE,
    not_symmetric = NPUSHMEM_E_NOT_SYMMETRIC,
    not_initialized = NPUSHMEM_E_NOT_INITIALIZED,
    state = NPUSHMEM_E_STATE,
    mismatch = NPUSHMEM_E_MISMATCH,
    config = NPUSHMEM_E_CONFIG,
    plugin_missing = NPUSHMEM_E_PLUGIN_MISSING,
    plugin_refused = NPUSHMEM_E_PLUGIN_REFUSED,
    unsupported = NPUSHMEM_E_UNSUPPORTED,
    unreachable = NPUSHMEM_E_UNREACHABLE,
    peer_dead = NPUSHMEM_E_PEER_DEAD,
    timeout = NPUSHMEM_E_TIMEOUT,
    protocol = NPUSHMEM_E_PROTOCOL,
    aborted = NPUSHMEM_E_ABORTED,
    memory = NPUSHMEM_E_MEMORY,
    system = NPUSHMEM_E_SYSTEM,
};

// The code's name for users, for instance "timeout"; "unknown" for an unknown number.
constexpr std::string_view name_of(Code code) {
    switch (code) {
        case Code::ok: return "ok";
        case Code::again: return "again";
        case Code::argument: return "argument";
        case Code::range: return "range";
        case Code::not_symmetric: return "not symmetric";
        case Code::not_initialized: return "not initialized";
        case Code::state: return "state";
        case Code::mismatch: return "mismatch";
        case Code::config: return "configuration";
        case Code::plugin_missing: return "plugin missing";
        case Code::plugin_refused: return "plugin refused";
        case Code::unsupported: return "unsupported";
        case Code::unreachable: return "unreachable";
        case Code::peer_dead: return "peer dead";
        case Code::timeout: return "timeout";
        case Code::protocol: return "protocol";
        case Code::aborted: return "aborted";
        case Code::memory: return "memory";
        case Code::system: return "system";
    }
    return "unknown";
}

class [[nodiscard]] Status {
public:
    Status() = default;
    Status(Code code, std::string message)
        : code_(code), message_(message.empty() ? nullptr : std::make_unique<std::string>(std::move(message))) {}
    Status(const Status& other) : Status(other.code_, other.message()) {}
    Status(Status&&) = default;
    Status& operator=(const Status& other) { return *this = Status(other); }
    Status& operator=(Status&&) = default;
    ~Status() = default;

    [[nodiscard]] bool ok() const { return code_ == Code::ok; }
    [[nodiscard]] Code code() const { return code_; }
    [[nodiscard]] const std::string& message() const {
        static const std::string none;
        return message_ ? *message_ : none;
    }

    // Returns the same failure with a prefix: "<what>: <message>".
    [[nodiscard]] Status within(std::string_view what) const {
        return ok() ? Status{} : Status{code_, std::string(what) + ": " + message()};
    }

private:
    Code code_ = Code::ok;
    std::unique_ptr<const std::string> message_;  // null: empty. A success is cheap to return
};

// A value, or the Status with the reason why there is none.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
    Result(Status failure)
        : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    [[nodiscard]] T& value() & { return std::get<0>(state_); }
    [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
    [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
    // The failure; an ok Status when there is a value.
    [[nodiscard]] Status status() const { return ok() ? Status{} : std::get<1>(state_); }

private:
    std::variant<T, Status> state_;
};

// Fills a table's error structure, if there is one; returns the code. Allocates nothing, so that it can report that
// memory ran out. Truncates a message that does not fit.
inline std::int32_t report(Code code, std::string_view message, npushmem_error* error) noexcept {
    const auto number = static_cast<std::int32_t>(code);
    if (error == nullptr) return number;
    error->code = number;
    const std::size_t length = message.copy(error->message, sizeof error->message - 1);
    error->message[length] = '\0';
    return number;
}

// The same for a Status, for `return report(...)` in a trampoline.
inline std::int32_t report(const Status& status, npushmem_error* error) noexcept {
    return report(status.code(), status.message(), error);
}

// The text in a fixed array that the other side of the boundary filled: ends at the first NUL or with the array.
template <std::size_t N>
std::string text_of(const char (&array)[N]) {
    std::size_t length = 0;
    while (length < N && array[length] != '\0') ++length;
    return std::string(array, length);
}

// The message buffer of a table call. It begins without a message; the rest of its 2 KiB is not cleared.
struct ErrorBuffer : npushmem_error {
    ErrorBuffer() noexcept {
        code = NPUSHMEM_OK;
        message[0] = '\0';
    }
};

// The Status of a table call that returned `code` and may have filled `error`.
inline Status status_from(std::int32_t code, const npushmem_error& error) {
    if (code == NPUSHMEM_OK) return {};
    const auto known = static_cast<Code>(code);
    std::string message = text_of(error.message);
    if (message.empty()) message = "failed without a message (" + std::string(name_of(known)) + ")";
    return {known, std::move(message)};
}

}  // namespace npushmem
