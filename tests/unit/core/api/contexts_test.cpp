// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/contexts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace npushmem::api {

namespace {

npushmem_ctx_t handle_of(std::uintptr_t bits) { return reinterpret_cast<npushmem_ctx_t>(bits); }
std::uintptr_t bits_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

class ContextSlotsTest : public ::testing::Test {
protected:
    ~ContextSlotsTest() override { slots.clear(); }

    // Makes a context as the library does.
    Context& make(std::size_t min_unused = max_contexts) {
        Context* const context = slots.acquire(min_unused);
        context->state = Context::State::alive;
        context->map.mapped_pes = 1;
        return *context;
    }

    ContextSlots slots;
};

TEST_F(ContextSlotsTest, FindsAContextByItsAddress) {
    const Context& one = make();
    const Context& other = make();
    EXPECT_NE(&one, &other);
    EXPECT_EQ(known_context(handle_of(bits_of(&one))), &one);
    EXPECT_EQ(known_context(handle_of(bits_of(&other))), &other);
}

TEST_F(ContextSlotsTest, ADestroyedContextHasNoMembersAndMapsNoPe) {
    Context& context = make();
    slots.release(context);
    const Context* const found = known_context(handle_of(bits_of(&context)));
    ASSERT_EQ(found, &context);
    EXPECT_EQ(found->state, Context::State::destroyed);
    EXPECT_EQ(found->map.mapped_pes, 0U);
    EXPECT_EQ(found->members.count, 0);
}

TEST_F(ContextSlotsTest, ReusesASlotOnlyAfterTheMinimumOfOthers) {
    constexpr std::size_t min_unused = 10;
    Context& first = make(min_unused);
    slots.release(first);
    for (std::size_t i = 0; i < min_unused; ++i) {
        Context& next = make(min_unused);
        EXPECT_NE(&next, &first) << i;
        slots.release(next);
    }
    EXPECT_EQ(&make(min_unused), &first);
    EXPECT_EQ(first.state, Context::State::alive);
}

// Whatever the bits, a found context is in a slot of the array and is empty.
TEST_F(ContextSlotsTest, OtherHandlesFindNoLiveContext) {
    const Context& context = make();
    const std::uintptr_t good = bits_of(&context);
    const auto check = [&](std::uintptr_t bits) {
        if (bits == good || handle_of(bits) == NPUSHMEM_CTX_DEFAULT) return;
        const Context* const found = known_context(handle_of(bits));
        if (found == nullptr) return;
        const std::uintptr_t distance = bits_of(found) - bits_of(context_slots);
        EXPECT_LT(distance, sizeof context_slots) << std::hex << bits;
        EXPECT_EQ(distance % context_slot_bytes, 0U) << std::hex << bits;
        EXPECT_NE(found->state, Context::State::alive) << std::hex << bits;
        EXPECT_EQ(found->map.mapped_pes, 0U) << std::hex << bits;
    };
    for (unsigned bit = 0; bit < 64; ++bit) {
        const std::uintptr_t one = std::uintptr_t{1} << bit;
        for (const std::uintptr_t bits : {one, ~one, one - 1, good ^ one, good + one, good - one}) check(bits);
    }
    EXPECT_EQ(known_context(NPUSHMEM_CTX_INVALID), nullptr);
    EXPECT_EQ(known_context(NPUSHMEM_CTX_DEFAULT), &default_context);
    EXPECT_EQ(known_context(handle_of(bits_of(context_slots) - context_slot_bytes)), nullptr);
    EXPECT_EQ(known_context(handle_of(bits_of(context_slots) + sizeof context_slots)), nullptr);
}

TEST_F(ContextSlotsTest, FailsWhenAllSlotsAreInUse) {
    Context& first = make();
    for (std::size_t i = 1; i < max_contexts; ++i) ASSERT_NE(slots.acquire(max_contexts), nullptr) << i;
    EXPECT_EQ(slots.acquire(max_contexts), nullptr);
    slots.release(first);
    EXPECT_EQ(slots.acquire(max_contexts), &first);
    EXPECT_EQ(slots.acquire(max_contexts), nullptr);
}

TEST_F(ContextSlotsTest, FindsNoContextAfterClear) {
    const Context& context = make();
    slots.clear();
    EXPECT_EQ(known_context(handle_of(bits_of(&context)))->state, Context::State::none);
    EXPECT_EQ(known_context(handle_of(bits_of(&context)))->map.mapped_pes, 0U);
}

}  // namespace

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status on_other_thread(const Context& context) {
    Status found;
    std::thread([&] { found = ContextUse::Call(context).status(); }).join();
    return found;
}

class ContextUseTest : public ::testing::Test {
protected:
    Context& with(long options) {
        use.emplace(options, 3);
        context.use = &*use;
        return context;
    }

    std::optional<ContextUse> use;
    Context context;
};

TEST_F(ContextUseTest, AContextWithoutOptionsAllowsConcurrentCalls) {
    const ContextUse::Call one(context);
    EXPECT_TRUE(on_other_thread(context).ok());
    EXPECT_TRUE(one.status().ok());
}

TEST_F(ContextUseTest, APrivateContextRejectsOtherThreads) {
    with(NPUSHMEM_CTX_PRIVATE);
    EXPECT_TRUE(ContextUse::Call(context).status().ok());
    const Status found = on_other_thread(context);
    EXPECT_EQ(found.code(), Code::argument);
    EXPECT_THAT(found.message(), AllOf(HasSubstr("on PE 3"), HasSubstr("NPUSHMEM_CTX_PRIVATE, by another thread")));
    EXPECT_TRUE(ContextUse::Call(context).status().ok());
}

TEST_F(ContextUseTest, ASerializedContextRejectsConcurrentCalls) {
    with(NPUSHMEM_CTX_SERIALIZED);
    EXPECT_TRUE(on_other_thread(context).ok());
    {
        const ContextUse::Call one(context);
        EXPECT_TRUE(one.status().ok());
        const Status found = on_other_thread(context);
        EXPECT_EQ(found.code(), Code::argument);
        EXPECT_THAT(found.message(), HasSubstr("another thread is inside a call"));
    }
    EXPECT_TRUE(on_other_thread(context).ok());
}

}  // namespace

}  // namespace npushmem::api
