// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/descriptor_passing.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>

namespace npushmem {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> abstract{""};

FileDescriptor memory() { return FileDescriptor(::memfd_create("descriptor passing", MFD_CLOEXEC)); }

ino_t file_of(const FileDescriptor& descriptor) {
    struct stat facts {};
    return ::fstat(descriptor.get(), &facts) == 0 ? facts.st_ino : 0;
}

std::string folder_of_test() {
    const std::string folder = ::testing::TempDir() + "npushmem-passing";
    std::filesystem::create_directories(folder);
    return folder;
}

TEST(DescriptorPassing, GivesEachCallerTheSameFile) {
    for (const std::string& folder : {std::string(), folder_of_test()}) {
        const std::vector<std::string> folders{folder};
        auto offer = DescriptorOffer::open(folders);
        ASSERT_TRUE(offer.ok()) << offer.status().message();
        const auto first = DescriptorCall::connect(offer.value().address(), folders, 3);
        const auto second = DescriptorCall::connect(offer.value().address(), folders, 7);
        ASSERT_TRUE(first.ok() && second.ok()) << first.status().message() << second.status().message();
        const int callers[] = {3, 7};
        ASSERT_TRUE(offer.value().accept(callers).ok());
        const FileDescriptor sent = memory();
        ASSERT_TRUE(offer.value().send(sent.get()).ok());
        for (const auto* call : {&first, &second}) {
            const auto received = call->value().receive();
            ASSERT_TRUE(received.ok()) << received.status().message();
            EXPECT_NE(received.value().get(), sent.get());
            EXPECT_EQ(file_of(received.value()), file_of(sent));
        }
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder_of_test())) << "a socket stays behind";
}

TEST(DescriptorPassing, TriesOneMeetingPlaceAfterAnother) {
    const std::vector<std::string> here{folder_of_test()};
    auto offer = DescriptorOffer::open(here);
    ASSERT_TRUE(offer.ok());
    const std::vector<std::string> places{"", "/no/such/folder", folder_of_test()};
    EXPECT_TRUE(DescriptorCall::connect(offer.value().address(), places, 0).ok());
    const auto none = DescriptorCall::connect(offer.value().address(), abstract, 0);
    EXPECT_EQ(none.status().code(), Code::unreachable);
    EXPECT_THAT(none.status().message(), HasSubstr("no common Unix socket (abstract: Connection refused)"));
}

TEST(DescriptorPassing, DoesNotAnswerCallersWithoutTheSecret) {
    auto offer = DescriptorOffer::open(abstract);
    ASSERT_TRUE(offer.ok());
    OfferAddress guessed = offer.value().address();
    guessed.secret[1] ^= 1;
    const auto stranger = DescriptorCall::connect(guessed, abstract, 1);
    ASSERT_TRUE(stranger.ok()) << "it connects, but";
    const int callers[] = {1};
    EXPECT_THAT(offer.value().accept(callers).message(), HasSubstr("PE 1 has connected"));
    ASSERT_TRUE(offer.value().send(memory().get()).ok());
    EXPECT_FALSE(stranger.value().receive().ok());
}

TEST(DescriptorPassing, DropsCallersThatAreNotExpected) {
    auto offer = DescriptorOffer::open(abstract);
    ASSERT_TRUE(offer.ok());
    const auto call = DescriptorCall::connect(offer.value().address(), abstract, 1);
    ASSERT_TRUE(call.ok() && offer.value().accept({}).ok() && offer.value().send(memory().get()).ok());
    EXPECT_FALSE(call.value().receive().ok());
}

TEST(DescriptorPassing, NeedsAPlaceToListen) {
    const std::vector<std::string> nowhere{"/no/such/folder", "/" + std::string(200, 'x')};
    EXPECT_EQ(DescriptorOffer::open(nowhere).status().code(), Code::system);
    EXPECT_FALSE(OfferAddress{}.exists());
}

}  // namespace
}  // namespace npushmem
