// SPDX-License-Identifier: BSD-3-Clause
// The kernel language: the operations of a kernel on one vector core.
//
// A kernel is any callable void(Core&, args...). It runs once on every vector core of a launch (launch.hpp). The same
// source runs in every mode of the device. In fast mode each command runs at its call, so flags and pipe barriers cost
// nothing and are not checked. Write them as hardware needs them; checked mode finds the missing ones.
//
// Errors: a violated rule (alignment, count, capacity) throws KernelError, which ends the launch unless the kernel
// catches it. Waits throw KernelError when a deadline passes, a peer is dead, or the launch is being aborted.
//
// Threads: a Core belongs to the context that the kernel runs on and must not be passed to another one. The cores of a
// launch take turns on one thread: another core runs whenever this one waits. Between two waits, a core's accesses
// therefore never interleave with other cores of this launch, but they may interleave with other PEs and launches.
//
// Ordering: stores become visible to other PEs in order at a signal (signal_*, put_signal), at quiet, at fence and at
// barriers. A wait for a signal makes everything ordered before the signal visible.
#pragma once

#include <atomic>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "npushmem/npu/copy_shape.hpp"
#include "npushmem/npu/core_state.hpp"
#include "npushmem/npu/error.hpp"
#include "npushmem/npu/hooks.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/views.hpp"

namespace npushmem::npu {

// Limits of one wait: a timeout (0: the device's wait_timeout), and the PEs whose death ends it.
struct WaitLimit {
    std::chrono::nanoseconds timeout{0};
    Awaited from{};
};

// Types of scalar loads, stores and atomics.
template <class T>
concept Scalar = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicInteger = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

// One class, although it has many functions: it is the kernel language, and a kernel reaches every operation through
// the one object that it is given. The functions keep no state in common but the core that they run on.
class NPUSHMEM_NPU_EXPORT Core {
public:
    using Where = SourceLocation;

    explicit Core(const detail::CoreState& state) : state_(state) {}
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    ~Core() = default;

    // ---- position -------------------------------------------------------------------------------------------------
    [[nodiscard]] int block_index() const { return state_.position.block; }
    [[nodiscard]] int block_count() const { return state_.position.blocks; }
    [[nodiscard]] int sub_core_index() const { return state_.position.sub_core; }
    [[nodiscard]] int sub_core_count() const { return state_.position.sub_cores; }
    // Index among all vector cores of the launch, below count().
    [[nodiscard]] int index() const { return block_index() * sub_core_count() + sub_core_index(); }
    [[nodiscard]] int count() const { return block_count() * sub_core_count(); }
    [[nodiscard]] int my_pe() const { return state_.my_pe; }
    [[nodiscard]] int n_pes() const { return state_.n_pes; }
    // A monotonic counter in machine ticks (time stamps on x86, nanoseconds elsewhere).
    [[nodiscard]] std::uint64_t cycles() const;

    // ---- unified buffer -------------------------------------------------------------------------------------------
    // Allocates `count` elements at the next 32-byte boundary; contents are undefined. Throws Code::memory when UB is
    // exhausted.
    template <class T>
    ub_view<T> ub_alloc(std::size_t count, const Where& where = Where::current());
    // Returns `count` elements at a fixed offset (bytes, a multiple of 32), for kernels that lay out UB themselves. May
    // overlap memory from ub_alloc. Throws Code::memory when it does not fit.
    template <class T>
    ub_view<T> ub_at(std::size_t offset, std::size_t count, const Where& where = Where::current());
    // Bytes used by ub_alloc, and bytes still free. ub_release frees all allocations made since ub_used returned
    // `mark`.
    [[nodiscard]] std::size_t ub_used() const { return ub_used_; }
    [[nodiscard]] std::size_t ub_free() const { return state_.ub.bytes - ub_used_; }
    void ub_release(std::size_t mark);

    // ---- copies between GM and UB ---------------------------------------------------------------------------------
    // Plain: `count` elements, a positive multiple of 32 bytes; UB address 32-byte aligned, GM aligned to T.
    // GM to UB runs on MTE2, UB to GM on MTE3. Reads or writes GM directly, past the scalar cache.
    template <class T>
    void data_copy(ub_view<T> target, gm_view<const std::type_identity_t<T>> source, std::size_t count,
                   const Where& where = Where::current());
    template <class T>
    void data_copy(gm_view<T> target, ub_view<const std::type_identity_t<T>> source, std::size_t count,
                   const Where& where = Where::current());
    // Strided, in units of 32 bytes on both sides.
    template <class T>
    void data_copy(ub_view<T> target, gm_view<const std::type_identity_t<T>> source, const StridedShape& shape,
                   const Where& where = Where::current());
    template <class T>
    void data_copy(gm_view<T> target, ub_view<const std::type_identity_t<T>> source, const StridedShape& shape,
                   const Where& where = Where::current());
    // Byte-granular on the GM side. Into UB, each block is filled up to 32 bytes with `padding`; out of UB, exactly
    // block_bytes of each block are written.
    template <class T>
    void data_copy_pad(ub_view<T> target, gm_view<const std::type_identity_t<T>> source, const PadShape& shape,
                       std::type_identity_t<T> padding = T{}, const Where& where = Where::current());
    template <class T>
    void data_copy_pad(gm_view<T> target, ub_view<const std::type_identity_t<T>> source, const PadShape& shape,
                       const Where& where = Where::current());
    // Until clear_atomic, copies out of UB add to GM (each element atomically) instead of overwriting it.
    template <Number T>
    void set_atomic_add(const Where& where = Where::current());
    void clear_atomic(const Where& where = Where::current());

    // ---- vector operations, UB to UB (pipe V) ---------------------------------------------------------------------
    // Operate on the first `count` elements, at least 1. All addresses must be 32-byte aligned. `target` may be one of
    // the sources; other overlaps are undefined. Rounding: see vector_ops.hpp.
    template <class T>
    void copy(ub_view<T> target, ub_view<const std::type_identity_t<T>> source, std::size_t count,
              const Where& where = Where::current());
    template <class T>
    void fill(ub_view<T> target, std::type_identity_t<T> value, std::size_t count,
              const Where& where = Where::current());
    template <Number To, class From>
    void cast(ub_view<To> target, ub_view<From> source, std::size_t count, const Where& where = Where::current());
    template <Number T>
    void add(ub_view<T> target, ub_view<const std::type_identity_t<T>> a, ub_view<const std::type_identity_t<T>> b,
             std::size_t count, const Where& where = Where::current());
    template <Number T>
    void subtract(ub_view<T> target, ub_view<const std::type_identity_t<T>> a, ub_view<const std::type_identity_t<T>> b,
                  std::size_t count, const Where& where = Where::current());
    template <Number T>
    void multiply(ub_view<T> target, ub_view<const std::type_identity_t<T>> a, ub_view<const std::type_identity_t<T>> b,
                  std::size_t count, const Where& where = Where::current());
    template <Number T>
    void add_scalar(ub_view<T> target, ub_view<const std::type_identity_t<T>> source, std::type_identity_t<T> scalar,
                    std::size_t count, const Where& where = Where::current());
    template <Number T>
    void multiply_scalar(ub_view<T> target, ub_view<const std::type_identity_t<T>> source,
                         std::type_identity_t<T> scalar, std::size_t count, const Where& where = Where::current());
    // target += a * b
    template <Number T>
    void multiply_add(ub_view<T> target, ub_view<const std::type_identity_t<T>> a,
                      ub_view<const std::type_identity_t<T>> b, std::size_t count,
                      const Where& where = Where::current());
    // target += scalar * source; a float target also takes half and bfloat16 sources.
    template <Number To, class From>
    void axpy(ub_view<To> target, ub_view<From> source, std::type_identity_t<To> scalar, std::size_t count,
              const Where& where = Where::current());

    // ---- order between pipes of this core -------------------------------------------------------------------------
    // Pipe A executes set_flag<A, B>(id) after its earlier commands; wait_flag<A, B>(id) blocks pipe B until then. 0 <=
    // id < 6.
    template <Pipe from, Pipe to>
    void set_flag(int id, const Where& where = Where::current());
    template <Pipe from, Pipe to>
    void wait_flag(int id, const Where& where = Where::current());
    // Later commands of the pipe wait for its earlier ones. Pipe::all: later commands of all pipes wait for earlier
    // ones of all pipes. Not for Pipe::scalar.
    template <Pipe pipe>
    void pipe_barrier(const Where& where = Where::current());

    // ---- scalar accesses (pipe S) ---------------------------------------------------------------------------------
    // Accesses to GM go through this core's private, non-coherent cache: call dcci before reading data of other
    // writers, and after writing data for other readers. The address must be aligned to T. Each access is one (relaxed)
    // machine access.
    template <Scalar T>
    [[nodiscard]] T load(const T* address, const Where& where = Where::current());
    template <Scalar T>
    void store(T* address, std::type_identity_t<T> value, const Where& where = Where::current());
    // Access the element at `index` of a view of either memory. Throw Code::range outside the view.
    template <class T, class Tag>
    [[nodiscard]] std::remove_const_t<T> get(memory_view<T, Tag> view, std::size_t index,
                                             const Where& where = Where::current());
    template <class T, class Tag>
    void set(memory_view<T, Tag> view, std::size_t index, std::type_identity_t<T> value,
             const Where& where = Where::current());
    // Cleans and invalidates the cache lines of [address, address + bytes). A loop that calls it repeatedly on one line
    // lets other cores run in between.
    void dcci(const void* address, std::size_t bytes = 1, const Where& where = Where::current());

    // ---- order towards other PEs ----------------------------------------------------------------------------------
    // Drains all pipes and cleans the cache. On return, all earlier stores, puts and atomics of this core are complete
    // everywhere.
    void quiet(const Where& where = Where::current());
    // Orders earlier stores, puts and atomics to each PE before later ones to the same PE.
    void fence(const Where& where = Where::current());

    // ---- other PEs ------------------------------------------------------------------------------------------------
    // Returns `pe`'s copy of a symmetric address, for loads, stores and copies. Throws Code::range for an invalid PE,
    // Code::not_symmetric, and Code::unreachable when that PE's memory is not mapped.
    //
    // The operations below that take a PE also reach such PEs, through their transport; other cores run while they
    // wait. They throw the errors of the transport and of waits.
    template <class T>
    [[nodiscard]] T* remote(T* symmetric, int pe, const Where& where = Where::current()) const;
    template <class T>
    [[nodiscard]] gm_view<T> remote(gm_view<T> symmetric, int pe, const Where& where = Where::current()) const;
    // Copies `count` elements between this PE's GM and `pe`'s copy of a symmetric address; `count` may be 0. Puts run
    // on MTE3 and gets on MTE2: a flag to S, or quiet, must precede the use of the data and changes of its source.
    template <class T>
    void put(T* target, const T* source, std::size_t count, int pe, const Where& where = Where::current());
    template <class T>
    void get(T* target, const T* source, std::size_t count, int pe, const Where& where = Where::current());
    // put, followed by the signal: a PE that sees the signal sees the data.
    template <class T>
    void put_signal(T* target, const T* source, std::size_t count, std::uint64_t* signal, std::uint64_t value, int pe,
                    const Where& where = Where::current());

    // ---- signals (64-bit words, each alone in its cache line when writers differ) -----------------------------------
    // Stores the word and cleans its line (dcci). The form with `pe` acts on that PE's copy of a symmetric word. A
    // reader that sees the value also sees everything that this core stored before. (Publish data written by DMA only
    // after a flag or barrier.)
    void signal_set(std::uint64_t* word, std::uint64_t value, const Where& where = Where::current());
    void signal_set_on(std::uint64_t* word, std::uint64_t value, int pe, const Where& where = Where::current());
    // Adds to the word atomically, also among PEs.
    void signal_add(std::uint64_t* word, std::uint64_t value, const Where& where = Where::current());
    void signal_add_on(std::uint64_t* word, std::uint64_t value, int pe, const Where& where = Where::current());
    // Returns the current value of the word.
    [[nodiscard]] std::uint64_t signal_fetch(const std::uint64_t* word, const Where& where = Where::current());
    [[nodiscard]] std::uint64_t signal_fetch_on(const std::uint64_t* word, int pe,
                                                const Where& where = Where::current());
    // Waits until `*word compare value` is true and returns the value that satisfied it. `from`: the number of the PE
    // whose store is expected, or -1, or an Awaited that names further PEs. Throws Code::timeout after the device's
    // wait_timeout, Code::peer_dead, Code::aborted.
    std::uint64_t signal_wait_until(const std::uint64_t* word, Compare compare, std::uint64_t value,
                                    const Awaited& from = {}, const Where& where = Where::current());
    // Like signal_wait_until, but polls the copy of a symmetric word on the PE whose store is expected.
    std::uint64_t signal_wait_until_on(const std::uint64_t* word, Compare compare, std::uint64_t value,
                                       const Awaited& from, const Where& where = Where::current());
    // Like signal_wait_until, with a limit for this wait. Returns a timeout or a dead peer instead of throwing it.
    Result<std::uint64_t> signal_wait_for(const std::uint64_t* word, Compare compare, std::uint64_t value,
                                          const WaitLimit& limit, const Where& where = Where::current());

    // ---- atomics on GM (this PE's or, through remote(), a peer's; or `pe`'s copy of it); acquire and release --------
    template <AtomicInteger T>
    T atomic_fetch_add(T* address, std::type_identity_t<T> value, const Where& where = Where::current());
    template <Scalar T>
    T atomic_swap(T* address, std::type_identity_t<T> value, const Where& where = Where::current());
    // Returns the old value; stores `desired` if the old value was `expected`.
    template <AtomicInteger T>
    T atomic_compare_swap(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                          const Where& where = Where::current());

    template <AtomicInteger T>
    T atomic_fetch_add_on(T* symmetric, std::type_identity_t<T> value, int pe, const Where& where = Where::current());
    template <AtomicInteger T>
    T atomic_swap_on(T* symmetric, std::type_identity_t<T> value, int pe, const Where& where = Where::current());
    template <AtomicInteger T>
    T atomic_compare_swap_on(T* symmetric, std::type_identity_t<T> expected, std::type_identity_t<T> desired, int pe,
                             const Where& where = Where::current());

    // ---- order between cores ----------------------------------------------------------------------------------------
    // A barrier among all cores of the launch; every core must call it equally often. Everything a core did before is
    // visible to all cores after it (on hardware: pipes and cache follow the usual rules of communication). Throws
    // Code::mismatch when a core ends its kernel without arriving, Code::timeout, Code::aborted.
    void core_barrier(const Where& where = Where::current());
    // Lets other cores run.
    void yield(const Where& where = Where::current());
    // Debug output with the format of printf. Each line begins with "[PE 0 core 3] ", in virtual time with
    // "[PE 0 core 3, 12.345 us] ". A newline at the end is added if it is missing; the text of a call is cut off after
    // 1023 bytes. The lines of the cores of a launch appear in the order of the calls. Lines are written whole, also
    // where the PEs of a job share standard output. DeviceConfig::print selects another destination. Printing creates
    // no order and is no access.
    [[gnu::format(printf, 2, 3)]] void print(const char* format, ...);
    // For the library: the hooks of this core; null in fast mode.
    [[nodiscard]] CoreHooks* hooks() const { return state_.hooks; }
    [[nodiscard]] detail::CoreContext* context() const { return state_.context; }
    [[nodiscard]] const Fabric& fabric() const { return *state_.fabric; }

private:
    template <class Describe, class Run>
    void issue(Describe&& describe, Run&& run);
    template <class T>
    void check_scalar(const char* operation, const T* address, const Where& where) const;
    [[nodiscard]] std::byte* ub_take(std::size_t offset, std::size_t count, std::size_t element, bool placed,
                                     const Where& where);
    template <class T, class Run, class Changes>
    T atomic(const char* operation, T* address, bool add, const Where& where, Run&& run, Changes&& changes);
    // Like remote(), but returns null when only the operations for unmapped PEs reach the PE.
    template <class T>
    [[nodiscard]] T* find(T* symmetric, int pe, const Where& where) const;
    [[nodiscard]] void* find_slow_path(const void* symmetric, int pe, const Where& where) const;
    [[nodiscard]] void* remote_slow_path(const void* symmetric, int pe, const Where& where) const;
    void put_unmapped(void* target, const void* source, std::size_t bytes, int pe, const Where& where);
    void get_unmapped(void* target, const void* source, std::size_t bytes, int pe, const Where& where);
    void put_signal_unmapped(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                             std::uint64_t value, int pe, const Where& where);
    void signal_unmapped(const Signal& signal, int pe, const Where& where);
    std::uint64_t poll_unmapped(const std::uint64_t* word, int pe, const Where& where);
    std::uint64_t fetch_unmapped(const std::uint64_t* word, int pe, const Where& where);
    std::uint64_t atomic_unmapped(const char* operation, const RemoteAtomic& what, int pe, const Where& where);
    std::uint64_t wait_unmapped(const detail::Condition& condition, const Where& where);
    void fence_unmapped(const Where& where);
    void quiet_unmapped(const Where& where);
    std::uint64_t wait_slow_path(const detail::Condition& condition, const Where& where);
    void core_barrier_slow_path(const Where& where);
    // `round`: number of consecutive polls; 0: a plain yield.
    void poll_point(std::uint64_t round, const Where& where);

    detail::CoreState state_;
    std::size_t ub_used_ = 0;
    detail::Accumulate accumulate_ = nullptr;
    // Detect polling: the line of the last dcci; the number of consecutive dccis of this line; dcci calls left until
    // one counts as a poll anyway (a loop over several lines polls, too).
    std::uintptr_t last_line_ = 0;
    std::uint64_t polls_ = 0;
    int dcci_left_ = dcci_burst;
    static constexpr int dcci_burst = 64;
};

}  // namespace npushmem::npu

#include "npushmem/npu/core_copies.hpp"
#include "npushmem/npu/core_memory.hpp"
#include "npushmem/npu/core_vectors.hpp"
