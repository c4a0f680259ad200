// With the kernel's own events, where it gives them.
#include "transports/verbs/userfault_watch.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using network::WireContext;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t bytes = 64 << 10;

// Memory that is written to, and goes with the object.
class Mapping {
public:
    explicit Mapping(int flags = MAP_PRIVATE | MAP_ANONYMOUS, void* at = nullptr)
        : at_(::mmap(at, bytes, PROT_READ | PROT_WRITE, flags | (at != nullptr ? MAP_FIXED : 0), -1, 0)) {
        std::memset(at_, 1, bytes);
    }
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(at_, other.at_);
        return *this;
    }
    ~Mapping() {
        if (at_ != nullptr) (void)::munmap(at_, bytes);
    }
    [[nodiscard]] void* get() const { return at_; }
    // It is somebody else's now, or nobody's.
    void release() { at_ = nullptr; }
    [[nodiscard]] AddressRange range() const {
        const auto begin = reinterpret_cast<std::uintptr_t>(at_);
        return {begin, begin + bytes};
    }

private:
    void* at_;
};

class UserfaultWatchTest : public ::testing::Test {
protected:
    void SetUp() override {
        auto opened = UserfaultWatch::open();
        if (!opened.ok()) GTEST_SKIP() << opened.status().message();
        watch_ = std::move(opened).value();
        if (!watch_->watch(Mapping().range())) GTEST_SKIP() << "this kernel cannot watch without protecting";
        position_ = watch_->now();
    }
    // A change whose event has been read may still be going on for an instant: then nothing is sure, which is right.
    std::vector<AddressRange> changes() {
        std::vector<AddressRange> out;
        while (!watch_->changes(position_, [&](const AddressRange& gone) { out.push_back(gone); })) {
        }
        return out;
    }

    std::unique_ptr<UserfaultWatch> watch_;
    MemoryWatch::Position position_ = 0;
};

TEST_F(UserfaultWatchTest, TellsOfEverythingThatTakesPagesAway) {
    struct Change {
        const char* name;
        std::function<bool(Mapping&)> make;
    };
    const auto unmap = [](Mapping& of) {
        const bool done = ::munmap(of.get(), bytes) == 0;
        of.release();
        return done;
    };
    const auto unmap_some = [](Mapping& of) { return ::munmap(static_cast<std::byte*>(of.get()) + 8192, 4096) == 0; };
    const auto empty = [](Mapping& of) { return ::madvise(of.get(), bytes, MADV_DONTNEED) == 0; };
    const auto empty_later = [](Mapping& of) { return ::madvise(of.get(), bytes, MADV_FREE) == 0; };
    const auto shrink = [](Mapping& of) { return ::mremap(of.get(), bytes, bytes / 2, 0) == of.get(); };
    const auto replace = [](Mapping& of) {
        Mapping with(MAP_PRIVATE | MAP_ANONYMOUS, of.get());
        const bool done = with.get() == of.get();
        of.release();
        return done;
    };
    const auto move = [](Mapping& of) {
        Mapping to;
        // UCX puts a function of its own in the place of mremap, which forgets where to.
        const long moved = ::syscall(SYS_mremap, of.get(), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to.get());
        const bool done = moved == reinterpret_cast<std::intptr_t>(to.get());
        of.release();
        return done;
    };
    for (const Change& change :
         {Change{"munmap", unmap}, Change{"munmap of a page", unmap_some}, Change{"madvise", empty},
          Change{"madvise, lazily", empty_later}, Change{"mremap to less", shrink}, Change{"mmap over it", replace},
          Change{"mremap", move}}) {
        SCOPED_TRACE(change.name);
        Mapping memory;
        const AddressRange range = memory.range();
        ASSERT_TRUE(watch_->watch(range));
        EXPECT_THAT(changes(), IsEmpty());
        ASSERT_TRUE(change.make(memory)) << std::strerror(errno);
        const auto told = changes();
        EXPECT_TRUE(std::any_of(told.begin(), told.end(), [&](const auto& each) { return each.overlaps(range); }));
        memory = Mapping();
        (void)changes();
    }
}

TEST_F(UserfaultWatchTest, DoesNotTellOfOtherMemoryAndOtherChanges) {
    const Mapping memory;
    ASSERT_TRUE(watch_->watch(memory.range()));
    { const Mapping other; }
    ASSERT_EQ(::mprotect(memory.get(), bytes, PROT_READ), 0);
    ASSERT_EQ(::mprotect(memory.get(), bytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(UserfaultWatchTest, RefusesMemoryThatChangesWithoutBeingToldOf) {
    const Mapping shared(MAP_SHARED | MAP_ANONYMOUS);
    EXPECT_FALSE(watch_->watch(shared.range()));
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto code = reinterpret_cast<std::uintptr_t>(&is_private_anonymous) / page * page;
    EXPECT_FALSE(watch_->watch({code, code + page}));
    const Mapping memory;
    EXPECT_TRUE(watch_->watch(memory.range()));
    ASSERT_EQ(::munmap(static_cast<std::byte*>(memory.get()) + 8192, 4096), 0);
    EXPECT_FALSE(watch_->watch(memory.range())) << "there is a hole in it";
}

TEST_F(UserfaultWatchTest, SaysWhenThereWereMoreChangesThanItRemembers) {
    for (int i = 0; i < 300; ++i) {
        const Mapping memory;
        ASSERT_TRUE(watch_->watch(memory.range()));
    }
    const bool sure = watch_->changes(position_, [](const AddressRange&) {});
    EXPECT_FALSE(sure);
    EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(UserfaultWatchTest, MissesNoChangeByAnotherThread) {
    for (int round = 0; round < 50; ++round) {
        auto memory = std::make_unique<Mapping>();
        const AddressRange range = memory->range();
        ASSERT_TRUE(watch_->watch(range));
        std::thread other([&] { memory.reset(); });
        other.join();
        EXPECT_THAT(changes(), Not(IsEmpty())) << round;
    }
}

TEST_F(UserfaultWatchTest, WhoUnmapsIsNotHeldWhenTheWatchGoes) {
    const Mapping memory;
    ASSERT_TRUE(watch_->watch(memory.range()));
    watch_.reset();  // the mapping goes afterwards
}

TEST_F(UserfaultWatchTest, AWireRegistersAnewWhatWasMappedAnew) {
    test::World world;
    std::shared_ptr<MemoryWatch> watch = std::move(watch_);
    world.start([&](VerbsWire& wire) { wire.use_watch(watch); });
    world.connect();
    auto memory = std::make_unique<Mapping>();
    void* const place = memory->get();
    const auto put = [&] {
        WireContext context;
        const int before = world.verbs->calls["reg_mr"];
        EXPECT_EQ(world.write(0, 0, place, 20000, context), Code::ok);
        world.drive();
        EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
        return world.verbs->calls["reg_mr"] - before;
    };
    (void)put();  // the peer's chunks as well
    EXPECT_EQ(put(), 1) << "kept from here on";
    EXPECT_EQ(put(), 0);
    memory.reset();
    memory = std::make_unique<Mapping>(MAP_PRIVATE | MAP_ANONYMOUS, place);
    std::memset(place, 5, bytes);
    EXPECT_EQ(put(), 1);
    EXPECT_EQ(world.words[1][0], 0x0505050505050505U);
    EXPECT_EQ(put() + put(), 0) << "kept again";
}

TEST(PrivateAnonymousMemory, IsToldFromOther) {
    const auto of = [](const void* at, std::size_t length) {
        const auto begin = reinterpret_cast<std::uintptr_t>(at) / 4096 * 4096;
        return AddressRange{begin, begin + length};
    };
    const Mapping memory;
    const Mapping shared(MAP_SHARED | MAP_ANONYMOUS);
    int on_the_stack = 0;
    const auto allocated = std::make_unique<std::byte[]>(100);
    EXPECT_TRUE(is_private_anonymous(memory.range()));
    EXPECT_TRUE(is_private_anonymous(of(&on_the_stack, 4096)));
    EXPECT_TRUE(is_private_anonymous(of(allocated.get(), 4096)));
    EXPECT_FALSE(is_private_anonymous(shared.range()));
    EXPECT_FALSE(is_private_anonymous(of(reinterpret_cast<const void*>(&is_private_anonymous), 4096)));
    EXPECT_FALSE(is_private_anonymous({4096, 8192})) << "nothing is there";
}

}  // namespace
}  // namespace npushmem::verbs
