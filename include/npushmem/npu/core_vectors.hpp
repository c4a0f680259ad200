// SPDX-License-Identifier: BSD-3-Clause
// Core's vector operations and flags. Included by core.hpp only.
#pragma once

#include <algorithm>

#include "npushmem/npu/core.hpp"

namespace npushmem::npu {

namespace detail {

// `addresses`: bitwise OR of all addresses.
inline void check_vector(const char* operation, std::uintptr_t addresses, std::size_t count, std::size_t room,
                         const Where& where) {
    // count - 1: zero wraps to a value larger than any room.
    if (addresses % ub_alignment != 0 || count - 1 >= room) [[unlikely]] {
        fail_vector(operation, addresses, count, room, where);
    }
}

template <class T, class... S>
void check_views(const char* operation, std::size_t count, const Where& where, ub_view<T> target,
                 ub_view<S>... sources) {
    check_vector(operation, (number_of(target.data()) | ... | number_of(sources.data())), count,
                 std::min({target.size(), sources.size()...}), where);
}

template <class T, class... S>
Command vector_command(const char* name, bool reads_target, std::size_t count, const Where& where, ub_view<T> target,
                       ub_view<S>... sources) {
    return {name,
            Pipe::vector,
            {target.data(), count * sizeof(T)},
            reads_target,
            {Operand{sources.data(), count * sizeof(S)}...},
            where};
}

}  // namespace detail

template <class T>
inline void Core::copy(ub_view<T> target, ub_view<const std::type_identity_t<T>> source, std::size_t count,
                       const Where& where) {
    detail::check_views("copy", count, where, target, source);
    issue([&] { return detail::vector_command("copy", false, count, where, target, source); },
          [=] { std::memmove(target.data(), source.data(), count * sizeof(T)); });
}

template <class T>
inline void Core::fill(ub_view<T> target, std::type_identity_t<T> value, std::size_t count, const Where& where) {
    detail::check_views("fill", count, where, target);
    issue([&] { return detail::vector_command("fill", false, count, where, target); },
          [=] { std::fill_n(target.data(), count, value); });
}

template <Number To, class From>
inline void Core::cast(ub_view<To> target, ub_view<From> source, std::size_t count, const Where& where) {
    detail::check_views("cast", count, where, target, source);
    issue([&] { return detail::vector_command("cast", false, count, where, target, source); },
          [=] { vector_ops::cast<To, std::remove_const_t<From>>(target.data(), source.data(), count); });
}

template <Number T>
inline void Core::add(ub_view<T> target, ub_view<const std::type_identity_t<T>> a,
                      ub_view<const std::type_identity_t<T>> b, std::size_t count, const Where& where) {
    detail::check_views("add", count, where, target, a, b);
    issue([&] { return detail::vector_command("add", false, count, where, target, a, b); },
          [=] { vector_ops::add(target.data(), a.data(), b.data(), count); });
}

template <Number T>
inline void Core::subtract(ub_view<T> target, ub_view<const std::type_identity_t<T>> a,
                           ub_view<const std::type_identity_t<T>> b, std::size_t count, const Where& where) {
    detail::check_views("subtract", count, where, target, a, b);
    issue([&] { return detail::vector_command("subtract", false, count, where, target, a, b); },
          [=] { vector_ops::subtract(target.data(), a.data(), b.data(), count); });
}

template <Number T>
inline void Core::multiply(ub_view<T> target, ub_view<const std::type_identity_t<T>> a,
                           ub_view<const std::type_identity_t<T>> b, std::size_t count, const Where& where) {
    detail::check_views("multiply", count, where, target, a, b);
    issue([&] { return detail::vector_command("multiply", false, count, where, target, a, b); },
          [=] { vector_ops::multiply(target.data(), a.data(), b.data(), count); });
}

template <Number T>
inline void Core::add_scalar(ub_view<T> target, ub_view<const std::type_identity_t<T>> source,
                             std::type_identity_t<T> scalar, std::size_t count, const Where& where) {
    detail::check_views("add_scalar", count, where, target, source);
    issue([&] { return detail::vector_command("add_scalar", false, count, where, target, source); },
          [=] { vector_ops::add_scalar(target.data(), source.data(), scalar, count); });
}

template <Number T>
inline void Core::multiply_scalar(ub_view<T> target, ub_view<const std::type_identity_t<T>> source,
                                  std::type_identity_t<T> scalar, std::size_t count, const Where& where) {
    detail::check_views("multiply_scalar", count, where, target, source);
    issue([&] { return detail::vector_command("multiply_scalar", false, count, where, target, source); },
          [=] { vector_ops::multiply_scalar(target.data(), source.data(), scalar, count); });
}

template <Number T>
inline void Core::multiply_add(ub_view<T> target, ub_view<const std::type_identity_t<T>> a,
                               ub_view<const std::type_identity_t<T>> b, std::size_t count, const Where& where) {
    detail::check_views("multiply_add", count, where, target, a, b);
    issue([&] { return detail::vector_command("multiply_add", true, count, where, target, a, b); },
          [=] { vector_ops::multiply_add(target.data(), a.data(), b.data(), count); });
}

template <Number To, class From>
inline void Core::axpy(ub_view<To> target, ub_view<From> source, std::type_identity_t<To> scalar, std::size_t count,
                       const Where& where) {
    detail::check_views("axpy", count, where, target, source);
    issue([&] { return detail::vector_command("axpy", true, count, where, target, source); },
          [=] { vector_ops::axpy<To, std::remove_const_t<From>>(target.data(), source.data(), scalar, count); });
}

template <Pipe from, Pipe to>
inline void Core::set_flag(int id, const Where& where) {
    static_assert(from != Pipe::all && to != Pipe::all && from != to, "a flag goes from one pipe to another");
    if (static_cast<unsigned>(id) >= flag_ids) [[unlikely]]
        detail::fail_flag("set_flag", id, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->set_flag(from, to, id, where);
}

template <Pipe from, Pipe to>
inline void Core::wait_flag(int id, const Where& where) {
    static_assert(from != Pipe::all && to != Pipe::all && from != to, "a flag goes from one pipe to another");
    if (static_cast<unsigned>(id) >= flag_ids) [[unlikely]]
        detail::fail_flag("wait_flag", id, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->wait_flag(from, to, id, where);
}

template <Pipe pipe>
inline void Core::pipe_barrier(const Where& where) {
    if constexpr (pipe == Pipe::scalar) {
        detail::fail_argument(Hazard::barrier_on_scalar, "pipe_barrier",
                              "the scalar pipe needs no barrier: it runs its commands in order", where);
    }
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->pipe_barrier(pipe, where);
}

}  // namespace npushmem::npu
