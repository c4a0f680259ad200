#include "core/memory/allocation_tracker.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::HasSubstr;

struct AllocationTrackerTest : ::testing::Test {
    AllocationTracker tracker;
    void expect(std::uint64_t offset, std::uint64_t bytes, Code code, const char* word) {
        const Status status = tracker.check(offset, bytes);
        EXPECT_EQ(status.code(), code) << status.message();
        EXPECT_THAT(status.message(), HasSubstr(word));
    }
};

TEST_F(AllocationTrackerTest, KnowsWhatLiesWholeInOneObject) {
    tracker.add(128, 64);
    tracker.add(192, 10);
    expect(128, 64, Code::ok, "");
    expect(191, 1, Code::ok, "");
    expect(192, 10, Code::ok, "");
    expect(128, 65, Code::range, "1 bytes beyond the object of 64 bytes");
    expect(150, 1000, Code::range, "reach 958 bytes beyond");
    expect(202, 1, Code::argument, "in no object");
    expect(0, 1, Code::argument, "in no object");
}

TEST_F(AllocationTrackerTest, RemembersWhatWasFreedUntilItLivesAgain) {
    tracker.add(0, 64);
    tracker.add(64, 64);
    tracker.add(128, 64);
    tracker.remove(0);
    tracker.remove(64);
    tracker.remove(128);
    tracker.remove(4096);  // never there
    expect(70, 8, Code::argument, "in an object of 64 bytes that has been freed");
    tracker.add(32, 64);  // over the first two
    expect(70, 8, Code::ok, "");
    expect(10, 8, Code::argument, "in no object");
    expect(130, 8, Code::argument, "has been freed");
    tracker.add(32, 128);  // has grown
    expect(130, 8, Code::ok, "");
}

}  // namespace
}  // namespace npushmem
