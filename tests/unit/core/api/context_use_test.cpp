#include "core/api/context_use.hpp"

#include <gmock/gmock.h>

#include <optional>

namespace npushmem::api {
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

TEST_F(ContextUseTest, WithoutItEveryCallIsAllowed) {
    const ContextUse::Call one(context);
    EXPECT_TRUE(on_other_thread(context).ok());
    EXPECT_TRUE(one.status().ok());
}

TEST_F(ContextUseTest, APrivateOneIsItsMakersAlone) {
    with(NPUSHMEM_CTX_PRIVATE);
    EXPECT_TRUE(ContextUse::Call(context).status().ok());
    const Status found = on_other_thread(context);
    EXPECT_EQ(found.code(), Code::argument);
    EXPECT_THAT(found.message(), AllOf(HasSubstr("on PE 3"), HasSubstr("NPUSHMEM_CTX_PRIVATE, by another thread")));
    EXPECT_TRUE(ContextUse::Call(context).status().ok());
}

TEST_F(ContextUseTest, ASerializedOneIsUsedInTurn) {
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
