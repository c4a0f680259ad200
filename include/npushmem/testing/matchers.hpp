// SPDX-License-Identifier: BSD-3-Clause
// Matchers of GoogleMock for tests of plugins: of codes and failures, of memory, of operations, and of reach.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <type_traits>

#include "npushmem/testing/printers.hpp"

namespace npushmem::matchers {

namespace detail {

inline Code code_of(Code code) { return code; }
template <class Failing>
Code code_of(const Failing& failing) {
    if constexpr (requires { failing.status(); })
        return failing.status().code();
    else
        return failing.code();
}

inline std::string message_of(const Status& status) { return status.message(); }
inline std::string message_of(const npushmem_event& event) { return text_of(event.message); }
inline std::string message_of(const npushmem_error& error) { return text_of(error.message); }
template <class T>
std::string message_of(const Result<T>& result) {
    return result.status().message();
}

// Up to 16 bytes in hexadecimal, with the byte `at` in brackets: "00 01 [02] 03".
inline std::string hex_around(std::span<const std::byte> bytes, std::size_t at) {
    constexpr std::size_t before = 6;
    constexpr std::size_t after = 9;
    const std::size_t first = at > before ? at - before : 0;
    std::string out = first > 0 ? "..." : "";
    for (std::size_t i = first; i < std::min(bytes.size(), at + after + 1); ++i) {
        std::array<char, 8> text{};
        (void)std::snprintf(text.data(), text.size(), i == at ? "[%02x]" : "%02x", static_cast<unsigned>(bytes[i]));
        out += (out.empty() ? "" : " ") + std::string(text.data());
    }
    if (at >= bytes.size()) out += out.empty() ? "[end]" : " [end]";
    return bytes.size() > at + after + 1 ? out + " ..." : out;
}

template <class Range>
std::span<const std::byte> bytes_of(const Range& range) {
    return std::as_bytes(std::span(range));
}

}  // namespace detail

// A Code, Status or Result that is ok.
MATCHER(IsOk, negation ? "is a failure" : "is ok") {
    if constexpr (!std::is_same_v<std::decay_t<arg_type>, Code>) {
        if (detail::code_of(arg) != Code::ok) *result_listener << "which is " << arg;
    }
    return detail::code_of(arg) == Code::ok;
}

// A Code, Status or Result with this code.
MATCHER_P(HasCode, code, std::string(negation ? "has not" : "has") + " the code " + ::testing::PrintToString(code)) {
    if constexpr (!std::is_same_v<std::decay_t<arg_type>, Code>) *result_listener << "which is " << arg;
    return detail::code_of(arg) == code;
}

// A Status, Result, npushmem_event or npushmem_error whose message matches: HasMessage(HasSubstr("depth")).
MATCHER_P(HasMessage, matcher, "has a message that " + ::testing::DescribeMatcher<std::string>(matcher, negation)) {
    return ::testing::ExplainMatchResult(matcher, detail::message_of(arg), result_listener);
}

namespace detail {

MATCHER_P(SameBytes, expected,
          std::string(negation ? "differs from" : "equals") + " the expected " + std::to_string(expected.size()) +
              " bytes") {
    const std::span<const std::byte> actual = bytes_of(arg);
    const std::span<const std::byte> wanted(expected);
    const auto common = std::min(actual.size(), wanted.size());
    std::size_t at = 0;
    while (at < common && actual[at] == wanted[at]) ++at;
    if (at == actual.size() && at == wanted.size()) return true;
    *result_listener << "which has " << actual.size() << " bytes and differs first at offset " << at << ":\n  expected "
                     << hex_around(wanted, at) << "\n  actual   " << hex_around(actual, at);
    return false;
}

}  // namespace detail

// A contiguous range of trivial elements that has the same bytes as the range `expected`, which is copied. Explains the
// first difference.
template <class Expected>
auto BytesAre(const Expected& expected) {
    const auto bytes = detail::bytes_of(expected);
    return detail::SameBytes(Bytes(bytes.begin(), bytes.end()));
}

// An npushmem_rma, or the data of an npushmem_put_signal, to this place. All arguments are values or matchers.
MATCHER_P3(RmaTo, pe, offset, bytes,
           (negation ? "is not an operation on PE " : "is an operation on PE ") + ::testing::PrintToString(pe) +
               ", offset " + ::testing::PrintToString(offset) + ", of " + ::testing::PrintToString(bytes) + " bytes") {
    const npushmem_rma& op = [&]() -> const npushmem_rma& {
        if constexpr (std::is_same_v<std::decay_t<arg_type>, npushmem_put_signal>)
            return arg.data;
        else
            return arg;
    }();
    return ::testing::Value(op.pe, pe) && ::testing::Value(op.offset, offset) && ::testing::Value(op.bytes, bytes);
}

// An npushmem_atomic with this NPUSHMEM_ATOMIC_x at this place. All arguments are values or matchers.
MATCHER_P3(AtomicOn, pe, offset, operation,
           (negation ? "is not operation " : "is operation ") + ::testing::PrintToString(operation) + " on PE " +
               ::testing::PrintToString(pe) + ", offset " + ::testing::PrintToString(offset)) {
    return ::testing::Value(arg.pe, pe) && ::testing::Value(arg.offset, offset) &&
           ::testing::Value(unsigned{arg.operation}, operation);
}

// An npushmem_put_signal that updates the signal word at this offset with this value and NPUSHMEM_SIGNAL_x. All
// arguments are values or matchers.
MATCHER_P3(SignalAt, offset, value, operation,
           (negation ? "does not update the signal at offset " : "updates the signal at offset ") +
               ::testing::PrintToString(offset) + " by operation " + ::testing::PrintToString(operation) +
               " with value " + ::testing::PrintToString(value)) {
    return ::testing::Value(arg.signal_offset, offset) && ::testing::Value(arg.signal, value) &&
           ::testing::Value(arg.operation, operation);
}

// An npushmem_peer with this number.
MATCHER_P(IsPe, pe, (negation ? "is not PE " : "is PE ") + ::testing::PrintToString(pe)) {
    return ::testing::Value(arg.pe, pe);
}

// A Reach that has all these capabilities.
MATCHER_P(HasCapabilities, bits,
          (negation ? "lacks one of: " : "has: ") +
              ::testing::PrintToString(Capabilities{static_cast<std::uint64_t>(bits)})) {
    return arg.has(static_cast<std::uint64_t>(bits));
}

// A Reach of a PE that cannot be reached, with a reason that matches.
MATCHER_P(IsUnreachable, why,
          (negation ? "is reachable, or its reason does not match: " : "is unreachable; its reason ") +
              ::testing::DescribeMatcher<std::string>(why)) {
    return !arg.reachable() && ::testing::ExplainMatchResult(why, arg.why, result_listener);
}

}  // namespace npushmem::matchers
