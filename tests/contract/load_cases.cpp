// SPDX-License-Identifier: BSD-3-Clause
// Many operations, large transfers, many PEs, and queues that are created and destroyed under load.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include "tests/contract/case_tools.hpp"
#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#else
constexpr bool sanitized = false;
#endif

constexpr std::uint64_t one_mebibyte = std::uint64_t{1} << 20;

void report_scale(const std::string& what, std::uint64_t value) {
    ::testing::Test::RecordProperty(what, std::to_string(value));
    std::cout << what << ": " << value << "\n";
}

// Puts of 8 bytes to successive words of the peer, with an addition to a counter of the peer after every third put.
// Nothing orders the puts of one batch: each word is written once per batch. Checks each batch at the target.
class PutStream {
public:
    static constexpr std::uint64_t words = std::uint64_t{1} << 16;  // 512 KiB: the largest batch
    static constexpr std::uint64_t counters = 64;
    static constexpr std::uint64_t counters_at = words * 8;

    PutStream(Pe& from, Pe& to) : from_(from), to_(to), source_(words) {
        const Reach& reach = from.reach(to.number());
        adds_ = reach.has(NPUSHMEM_CAP_ATOMIC) && (reach.atomic_64 >> NPUSHMEM_ATOMIC_ADD & 1) != 0;
        for (std::uint64_t i = 0; i < counters; ++i) set_word(to.memory(), counters_at + i * 8, 0);
    }

    void start_batch(std::uint64_t batch) {
        for (std::uint64_t i = 0; i < words; ++i) source_[i] = batch << 32 | (i * 3 + 1);
        posted_ = 0;
    }
    // Posts operation `i` of the batch.
    Code post(std::uint64_t i) {
        if (adds_ && i % 4 == 3) {
            npushmem_atomic op =
                from_.atomic_op(to_.number(), counters_at + i / 4 % counters * 8, NPUSHMEM_ATOMIC_ADD, 8);
            op.operand = 1;
            ++added_;
            return from_.atomic(op);
        }
        const std::uint64_t word = posted_++;
        return from_.put(to_.number(), word * 8, &source_[word], 8);
    }
    // Waits for the batch. Returns the number of words that do not have the value of this batch.
    std::uint64_t finish_batch() {
        if (from_.quiet() != Code::ok) return words;
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < posted_; ++i) wrong += word_at(to_.memory(), i * 8) != source_[i] ? 1U : 0U;
        return wrong;
    }
    // The difference between the additions that were posted and those that the counters show.
    [[nodiscard]] std::uint64_t lost_additions() const {
        std::uint64_t seen = 0;
        for (std::uint64_t i = 0; i < counters; ++i) seen += word_at(to_.memory(), counters_at + i * 8);
        return added_ - seen;
    }

private:
    Pe& from_;
    Pe& to_;
    std::vector<std::uint64_t> source_;
    std::uint64_t posted_ = 0;  // puts of this batch
    std::uint64_t added_ = 0;
    bool adds_ = false;
};

// Runs one batch of all streams, alternately. Returns false after a failed call.
bool run_batch(std::vector<std::unique_ptr<PutStream>>& streams, std::uint64_t batch, std::uint64_t operations,
               std::uint64_t& wrong) {
    for (auto& stream : streams) stream->start_batch(batch);
    for (std::uint64_t i = 0; i < operations / streams.size(); ++i) {
        for (auto& stream : streams) {
            const Code code = stream->post(i);
            EXPECT_EQ(code, Code::ok) << "operation " << i << " of batch " << batch;
            if (code != Code::ok) return false;
        }
    }
    for (auto& stream : streams) wrong += stream->finish_batch();
    return true;
}

// A first batch shows how fast the transport is here; a slow one, such as a decorator that delays, gets fewer
// operations. The time decides about the amount of work only, not about success.
void a_million_operations_arrive(Fabric& fabric) {
    constexpr std::uint64_t first_batch = 10'000;
    constexpr std::uint64_t all_operations = 1'000'000;
    constexpr double seconds = 4;
    const auto [from, to] = representative_pair(fabric, NPUSHMEM_CAP_PUT);
    std::vector<std::unique_ptr<PutStream>> streams;
    streams.push_back(std::make_unique<PutStream>(fabric.pe(from), fabric.pe(to)));
    if (from != to) streams.push_back(std::make_unique<PutStream>(fabric.pe(to), fabric.pe(from)));

    std::uint64_t wrong = 0;
    const auto started = std::chrono::steady_clock::now();
    ASSERT_TRUE(run_batch(streams, 1, first_batch, wrong));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    const double affordable = seconds / std::max(took.count(), 1e-6) * static_cast<double>(first_batch);
    const std::uint64_t operations =
        affordable >= static_cast<double>(all_operations)
            ? all_operations
            : std::max(first_batch, static_cast<std::uint64_t>(affordable) / first_batch * first_batch);
    report_scale("operations", operations);

    std::uint64_t batch = 1;
    for (std::uint64_t done = first_batch; done < operations;) {
        const std::uint64_t count = std::min(operations - done, PutStream::words);
        ASSERT_TRUE(run_batch(streams, ++batch, count, wrong));
        done += count;
    }
    EXPECT_EQ(wrong, 0U) << "words without the value of their batch";
    for (const auto& stream : streams) EXPECT_EQ(stream->lost_additions(), 0U);
}

// Memory of which only the pages that are written or read take space: anonymous, so that reading a page that was never
// written takes none.
class SparseBuffer {
public:
    explicit SparseBuffer(std::uint64_t bytes)
        : bytes_(bytes),
          start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (start_ == MAP_FAILED) throw std::runtime_error("cannot map a sparse buffer for the contract tests");
        (void)::madvise(start_, bytes, MADV_HUGEPAGE);  // fewer page faults, where the kernel has huge pages
    }
    SparseBuffer(const SparseBuffer&) = delete;
    SparseBuffer& operator=(const SparseBuffer&) = delete;
    ~SparseBuffer() { ::munmap(start_, bytes_); }
    [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

private:
    std::uint64_t bytes_;
    void* start_;
};

std::uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::uint64_t kibibytes = 0;
    for (std::string unit; file >> name >> kibibytes; std::getline(file, unit))
        if (name == "MemAvailable:") return kibibytes << 10;
    return 0;
}

// The target's pages take memory when the transport writes them, and those of a get's destination too, so the transfer
// needs up to twice its size. The thread sanitizer needs several times as much again.
std::uint64_t large_transfer_bytes(Layout layout) {
    const std::uint64_t available = available_memory();
    // The region has a file of its own in both layouts: one of them need not repeat the long transfer.
    if (layout == Layout::one_file || sanitized || available < 1024 * one_mebibyte) return 64 * one_mebibyte;
    return available < 4096 * one_mebibyte ? 256 * one_mebibyte : 1024 * one_mebibyte;
}

constexpr std::uint64_t page = 4096;

// The first and the last page, and those around every power of two.
std::vector<std::uint64_t> marked_pages(std::uint64_t bytes) {
    std::vector<std::uint64_t> out{0, bytes / page - 1};
    for (std::uint64_t at = 8; at < bytes / page; at *= 2) {
        out.push_back(at - 1);
        out.push_back(at + 2);
    }
    return out;
}

void mark_pages(std::span<std::byte> memory, std::uint64_t salt) {
    for (const std::uint64_t number : marked_pages(memory.size())) {
        const auto bytes = pattern(page, salt + number);
        std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(number * page));
    }
}

// The marked pages have their pattern, and the pages next to them are zero.
void expect_marked_pages(std::span<const std::byte> memory, std::uint64_t salt) {
    const auto marked = marked_pages(memory.size());
    const std::vector<std::byte> zeros(page);
    const auto is_marked = [&](std::uint64_t number) {
        return std::find(marked.begin(), marked.end(), number) != marked.end();
    };
    for (const std::uint64_t number : marked) {
        EXPECT_TRUE(same(memory.subspan(number * page, page), pattern(page, salt + number))) << "page " << number;
        for (const std::uint64_t next : {number - 1, number + 1}) {
            if (next >= memory.size() / page || is_marked(next)) continue;
            EXPECT_TRUE(same(memory.subspan(next * page, page), zeros)) << "page " << next << " is not zero";
        }
    }
}

// A quiet after so many bytes may take several times as long as another wait.
Code patient_quiet(Pe& pe) {
    constexpr int waits = 6;
    Code code = Code::timeout;
    for (int i = 0; i < waits && code == Code::timeout; ++i) code = pe.quiet();
    return code;
}

void a_transfer_of_a_gibibyte_arrives(Fabric& fabric) {
    const std::uint64_t bytes = large_transfer_bytes(fabric.subject().layout);
    report_scale("bytes", bytes);
    const auto [from, to] = representative_pair(fabric, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET);
    Pe& origin = fabric.pe(from);
    // A page more on each side, which the put must not change.
    const Slice slice(std::make_shared<const SharedFile>(bytes + 2 * page), 0, bytes + 2 * page);
    const ImportedRegion region(origin, fabric.pe(to), slice);
    const auto run = [&](bool is_put, std::span<std::byte> local) {
        const npushmem_rma op = region.rma(page, local.data(), local.size());
        ASSERT_EQ(until_accepted(fabric,
                                 [&] {
                                     return is_put ? origin.transport().put(origin.queue(), op, nullptr)
                                                   : origin.transport().get(origin.queue(), op, nullptr);
                                 }),
                  Code::ok);
        ASSERT_EQ(patient_quiet(origin), Code::ok) << (is_put ? "put" : "get");
    };
    const std::span<std::byte> target = slice.bytes().subspan(page, bytes);
    {
        const SparseBuffer source(bytes);
        mark_pages(source.bytes(), 17);
        run(true, source.bytes());
        expect_marked_pages(target, 17);
        const std::vector<std::byte> zeros(page);
        EXPECT_TRUE(same(slice.bytes().first(page), zeros)) << "written before the target";
        EXPECT_TRUE(same(slice.bytes().last(page), zeros)) << "written beyond the target";
    }
    mark_pages(target, 23);
    const SparseBuffer destination(bytes);
    run(false, destination.bytes());
    expect_marked_pages(destination.bytes(), 23);
}

void sizes_around_every_limit_arrive(Fabric& fabric) {
    constexpr std::size_t sizes[] = {
        0, 1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 65535, 65536, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1};
    constexpr std::size_t guard = 64;
    for (const auto& [from, to] : representative_pairs(fabric, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)) {
        Pe& origin = fabric.pe(from);
        for (const std::size_t bytes : sizes) {
            const auto source = pattern(bytes, bytes + 1);
            std::vector<std::byte> expected(bytes + 2 * guard, std::byte{0xee});
            std::copy(source.begin(), source.end(), expected.begin() + guard);
            const auto target = fabric.pe(to).memory().first(expected.size());
            std::fill(target.begin(), target.end(), std::byte{0xee});
            ASSERT_EQ(origin.put(to, guard, source.data(), bytes), Code::ok);
            ASSERT_EQ(origin.quiet(), Code::ok);
            const auto wrong = first_difference(target, expected);
            ASSERT_FALSE(wrong.has_value()) << "put of " << bytes << " bytes: byte " << *wrong << " is wrong";
            std::vector<std::byte> back(expected.size(), std::byte{0xee});
            ASSERT_EQ(origin.get(to, guard, back.data() + guard, bytes), Code::ok);
            ASSERT_EQ(origin.quiet(), Code::ok);
            const auto differs = first_difference(back, expected);
            ASSERT_FALSE(differs.has_value()) << "get of " << bytes << " bytes: byte " << *differs << " is wrong";
        }
    }
}

constexpr std::size_t block = 1000;
constexpr std::size_t block_stride = 1024;
constexpr std::size_t blocks_at = 4096;

std::uint64_t block_salt(int from, int to) { return static_cast<std::uint64_t>(from * 100 + to); }

void quiet_all(Fabric& fabric) {
    for (int pe = 0; pe < fabric.npes(); ++pe) ASSERT_EQ(fabric.pe(pe).quiet(), Code::ok) << "PE " << pe;
}

void put_all_to_all(Fabric& fabric) {
    std::vector<std::vector<std::byte>> sources;  // the moves of the inner vectors keep their bytes in place
    const auto pairs = fabric.pairs_with(NPUSHMEM_CAP_PUT);
    for (const auto& [from, to] : pairs) {
        sources.push_back(pattern(block, block_salt(from, to)));
        const auto at = blocks_at + static_cast<std::size_t>(from) * block_stride;
        ASSERT_EQ(fabric.pe(from).put(to, at, sources.back().data(), block), Code::ok) << from << " to " << to;
    }
    quiet_all(fabric);
    for (const auto& [from, to] : pairs) {
        const auto at = blocks_at + static_cast<std::size_t>(from) * block_stride;
        EXPECT_TRUE(same(fabric.pe(to).memory().subspan(at, block), pattern(block, block_salt(from, to))))
            << "put from " << from << " to " << to << " of " << fabric.npes();
    }
}

void get_all_from_all(Fabric& fabric) {
    for (int pe = 0; pe < fabric.npes(); ++pe) {
        const auto bytes = pattern(block, block_salt(pe, pe) + 7);
        std::copy(bytes.begin(), bytes.end(), fabric.pe(pe).memory().begin());
    }
    const auto pairs = fabric.pairs_with(NPUSHMEM_CAP_GET);
    std::vector<std::vector<std::byte>> landed(pairs.size(), std::vector<std::byte>(block));
    for (std::size_t i = 0; i < pairs.size(); ++i)
        ASSERT_EQ(fabric.pe(pairs[i].first).get(pairs[i].second, 0, landed[i].data(), block), Code::ok);
    quiet_all(fabric);
    for (std::size_t i = 0; i < pairs.size(); ++i)
        EXPECT_TRUE(same(landed[i], pattern(block, block_salt(pairs[i].second, pairs[i].second) + 7)))
            << "get by " << pairs[i].first << " from " << pairs[i].second << " of " << fabric.npes();
}

// Every PE adds to one word of every PE that it reaches.
void add_all_to_all(Fabric& fabric) {
    constexpr std::uint64_t rounds = 20;
    std::vector<std::uint64_t> expected(static_cast<std::size_t>(fabric.npes()), 0);
    for (int pe = 0; pe < fabric.npes(); ++pe) set_word(fabric.pe(pe).memory(), 2048, 0);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_ATOMIC)) {
            if ((fabric.pe(from).reach(to).atomic_64 >> NPUSHMEM_ATOMIC_ADD & 1) == 0) continue;
            npushmem_atomic op = fabric.pe(from).atomic_op(to, 2048, NPUSHMEM_ATOMIC_ADD, 8);
            op.operand = static_cast<std::uint64_t>(from) + 1;
            ASSERT_EQ(fabric.pe(from).atomic(op), Code::ok);
            expected[static_cast<std::size_t>(to)] += op.operand;
        }
    }
    quiet_all(fabric);
    for (int pe = 0; pe < fabric.npes(); ++pe)
        EXPECT_EQ(word_at(fabric.pe(pe).memory(), 2048), expected[static_cast<std::size_t>(pe)])
            << "additions to PE " << pe << " of " << fabric.npes();
}

void two_to_sixteen_pes_reach_each_other(Fabric& fabric) {
    constexpr int counts[] = {2, 3, 4, 8, 16};
    for (const int npes : counts) {
        const auto made = Fabric::make(fabric.subject(), npes);
        // A configuration may describe a machine for fewer PEs than this, but not for fewer than the case has.
        if (!made.ok() && npes > fabric.npes() && made.status().code() == Code::config) {
            report_scale("too many PEs for the configuration", static_cast<std::uint64_t>(npes));
            break;
        }
        ASSERT_TRUE(made.ok()) << npes << " PEs: " << made.status().message();
        put_all_to_all(*made.value());
        get_all_from_all(*made.value());
        add_all_to_all(*made.value());
        if (::testing::Test::HasFatalFailure()) return;
    }
}

// Each thread has its own words at the target. One thread at a time creates a queue; any number destroy theirs.
class QueueUser {
public:
    static constexpr std::uint64_t lives = 20;
    static constexpr std::uint64_t puts = 48;

    QueueUser(Fabric& fabric, PePair pair, std::uint64_t number, std::mutex& set_up)
        : fabric_(fabric), pair_(pair), number_(number), set_up_(set_up) {}

    void run() {
        std::vector<std::uint64_t> values(puts);
        for (std::uint64_t life = 1; life <= lives; ++life) {
            const std::uint64_t queue = create();
            if (queue == 0) return;
            Pe& from = fabric_.pe(pair_.first);
            const bool dropped = life % 3 == 0;
            for (std::uint64_t i = 0; i < puts; ++i) {
                values[i] = value(life, i);
                const npushmem_rma op = from.rma(pair_.second, offset(i, dropped), &values[i], 8);
                EXPECT_EQ(until_accepted(fabric_, [&] { return from.transport().put(queue, op, nullptr); }), Code::ok);
            }
            // Every third queue has operations in flight when it is destroyed. They may arrive at any time or never, so
            // they have words of their own.
            if (!dropped) {
                EXPECT_EQ(until_accepted(fabric_, [&] { return from.transport().quiet(queue); }), Code::ok);
                check(life);
            }
            EXPECT_EQ(from.transport().destroy_queue(queue), Code::ok);
        }
    }

private:
    std::uint64_t create() {
        const std::lock_guard lock(set_up_);
        auto made = fabric_.pe(pair_.first).transport().create_queue();
        EXPECT_TRUE(made.ok()) << made.status().message();
        return made.ok() ? made.value() : 0;
    }
    [[nodiscard]] std::uint64_t value(std::uint64_t life, std::uint64_t i) const {
        return number_ << 40 | life << 20 | (i + 1);
    }
    [[nodiscard]] std::uint64_t offset(std::uint64_t i, bool dropped) const {
        return (dropped ? one_mebibyte : 0) + (number_ * puts + i) * 8;
    }
    void check(std::uint64_t life) const {
        for (std::uint64_t i = 0; i < puts; ++i)
            EXPECT_EQ(word_at(fabric_.pe(pair_.second).memory(), offset(i, false)), value(life, i))
                << "put " << i << " of queue " << life << " of thread " << number_;
    }

    Fabric& fabric_;
    PePair pair_;
    std::uint64_t number_;
    std::mutex& set_up_;
};

void threads_create_and_destroy_queues_under_load(Fabric& fabric) {
    constexpr std::uint64_t users = 4;
    const auto pair = representative_pair(fabric, NPUSHMEM_CAP_PUT);
    std::mutex set_up;
    std::vector<std::unique_ptr<QueueUser>> each;
    for (std::uint64_t i = 0; i < users; ++i) each.push_back(std::make_unique<QueueUser>(fabric, pair, i, set_up));
    std::vector<std::thread> threads;
    threads.reserve(users);
    for (auto& user : each) threads.emplace_back([&user] { user->run(); });
    for (auto& thread : threads) thread.join();
}

}  // namespace

std::vector<Case> load_cases() {
    constexpr auto put_get = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET;
    return {{"a_million_operations_arrive", NPUSHMEM_CAP_PUT, a_million_operations_arrive},
            {"a_transfer_of_a_gibibyte_arrives", put_get, a_transfer_of_a_gibibyte_arrives},
            {"sizes_around_every_limit_arrive", put_get, sizes_around_every_limit_arrive},
            {"two_to_sixteen_pes_reach_each_other", 0, two_to_sixteen_pes_reach_each_other},
            {"threads_create_and_destroy_queues_under_load", NPUSHMEM_CAP_PUT,
             threads_create_and_destroy_queues_under_load}};
}

}  // namespace npushmem::contract
