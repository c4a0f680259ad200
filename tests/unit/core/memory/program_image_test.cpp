// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/program_image.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <memory>

namespace npushmem {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t page = 0x1000;

ElfW(Phdr) header(std::uint32_t type, std::uint32_t flags, std::uint64_t address, std::uint64_t in_file,
                  std::uint64_t in_memory) {
    ElfW(Phdr) made{};
    made.p_type = type;
    made.p_flags = flags;
    made.p_vaddr = address;
    made.p_filesz = in_file;
    made.p_memsz = in_memory;
    return made;
}

TEST(ProgramImage, ExcludesThePartThatTheLoaderMadeReadOnly) {
    // The layout of GNU ld: the first page of the writable segment is read-only after the start.
    const ElfW(Phdr) headers[] = {
        header(PT_LOAD, PF_R | PF_X, 0, 0x2345, 0x2345),
        header(PT_LOAD, PF_R | PF_W, 0x3e00, 0x1210, 0x5268),
        header(PT_GNU_RELRO, PF_R, 0x3e00, 0x200, 0x200),
    };
    const auto image = ProgramImage::of(headers, 0x10000, page);
    EXPECT_EQ(image.begin, 0x14000U);
    EXPECT_EQ(image.bytes, 0x6000U);
    ASSERT_EQ(image.segments.size(), 1U);
    EXPECT_EQ(image.segments[0].pages, (Range{0, 0x6000}));
    EXPECT_EQ(image.segments[0].initialised, 0x2000U) << "up to the end of the page in which the file's bytes end";
}

TEST(ProgramImage, KeepsAPartlyReadOnlyPage) {
    const ElfW(Phdr) headers[] = {
        header(PT_LOAD, PF_R | PF_W, 0x3e00, 0x400, 0x400),
        header(PT_GNU_RELRO, PF_R, 0x3e00, 0x300, 0x300),
    };
    const auto image = ProgramImage::of(headers, 0, page);
    EXPECT_EQ(image.begin, 0x4000U);
    EXPECT_EQ(image.bytes, 0x1000U);
}

TEST(ProgramImage, HasAPartForEachWritableSegment) {
    // The layout of LLVM's linker: constants to be relocated have a segment of their own, and so may large variables.
    const ElfW(Phdr) headers[] = {
        header(PT_LOAD, PF_R | PF_W, 0x20000, 0x100, 0x100),
        header(PT_LOAD, PF_R | PF_W, 0x10100, 0x200, 0x1f00),
        header(PT_LOAD, PF_R | PF_W, 0x4000, 0x1000, 0x1000),
        header(PT_GNU_RELRO, PF_R, 0x4000, 0x1000, 0x1000),
    };
    const auto image = ProgramImage::of(headers, 0, page);
    EXPECT_EQ(image.begin, 0x10000U);
    EXPECT_EQ(image.bytes, 0x11000U);
    ASSERT_EQ(image.segments.size(), 2U);
    EXPECT_EQ(image.segments[0].pages, (Range{0, 0x2000}));
    EXPECT_EQ(image.segments[0].initialised, 0x1000U);
    EXPECT_EQ(image.segments[1].pages, (Range{0x10000, 0x1000}));
    EXPECT_TRUE(image.contains(0x1fff, 1));
    EXPECT_FALSE(image.contains(0x1fff, 2)) << "reaches beyond its segment";
    EXPECT_FALSE(image.contains(0x2000, 1)) << "between the segments";
    EXPECT_TRUE(image.contains(0x10000, 0x1000));
    EXPECT_FALSE(image.contains(0x10001, ~std::uint64_t{0})) << "no wrap";
}

TEST(ProgramImage, IsEmptyWithoutVariables) {
    const ElfW(Phdr) headers[] = {header(PT_LOAD, PF_R | PF_X, 0, 0x2345, 0x2345)};
    const auto image = ProgramImage::of(headers, 0, page);
    EXPECT_EQ(image.bytes, 0U);
    EXPECT_FALSE(image.contains(0, 1));
}

int with_value = 7;
int without_value;
const int constant = 3;
thread_local int of_thread = 1;

std::uint64_t offset_of(const void* object, const ProgramImage& image) {
    return reinterpret_cast<std::uintptr_t>(object) - image.begin;
}

TEST(ProgramImage, ContainsTheVariablesOfThisProgram) {
    static long of_function[4];
    const auto image = image_of_this_program();
    EXPECT_TRUE(image.contains(offset_of(&with_value, image), sizeof with_value));
    EXPECT_TRUE(image.contains(offset_of(&without_value, image), sizeof without_value));
    EXPECT_TRUE(image.contains(offset_of(of_function, image), sizeof of_function));
    int local = 0;
    const auto allocated = std::make_unique<int>();
    for (const void* other : std::initializer_list<const void*>{&constant, &of_thread, &local, allocated.get()})
        EXPECT_FALSE(image.contains(offset_of(other, image), 1)) << describe_address(other);
    EXPECT_NE(image.identity, 0U);
    EXPECT_EQ(image_of_this_program().identity, image.identity);
}

TEST(DescribePlace, DescribesAnAddress) {
    int local = 0;
    const auto allocated = std::make_unique<int>();
    EXPECT_THAT(describe_address(&local), HasSubstr("stack"));
    EXPECT_THAT(describe_address(allocated.get()), HasSubstr("malloc"));
    EXPECT_THAT(describe_address(&of_thread), HasSubstr("thread_local"));
    EXPECT_THAT(describe_address(&with_value), HasSubstr("belongs to the executable"));
    EXPECT_THAT(describe_address(&constant), HasSubstr("constant"));
    // By the loader's name, so that it is the library's own and not the executable's copy.
    void* const of_library = dlsym(RTLD_NEXT, "__libc_single_threaded");
    ASSERT_NE(of_library, nullptr);
    EXPECT_THAT(describe_address(of_library), HasSubstr("belongs to the library"));
}

}  // namespace
}  // namespace npushmem
