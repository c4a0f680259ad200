#include "npushmem/npu/device_model.hpp"

#include <gmock/gmock.h>

#include "core/npu/time/shared_bandwidth.hpp"

namespace npushmem::npu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
    const auto model = DeviceModel::parse(text);
    EXPECT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.status().code(), Code::config);
    return model.status().message();
}

TEST(DeviceModel, DefaultsAreThoseOfThePart) {
    const auto model = DeviceModel::parse("");
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model.value().gm_rate, 1200);
    EXPECT_EQ(model.value().hccs_rate, 28);
    EXPECT_EQ(model.value().group, 8);
}

TEST(DeviceModel, WhatItWritesItReads) {
    DeviceModel model;
    model.flag = 7.5;
    model.group = 4;
    const auto back = DeviceModel::parse(model.text());
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back.value().flag, 7.5);
    EXPECT_EQ(back.value().group, 4);
    EXPECT_EQ(back.value().text(), model.text());
}

TEST(DeviceModel, WhatIsWrongIsNamedWithItsLine) {
    EXPECT_THAT(refusal("gm_rate = 1\n\n# a comment\nnonsense"), AllOf(HasSubstr("line 4"), HasSubstr("'nonsense'")));
    EXPECT_THAT(refusal("gm_rate = fast"), AllOf(HasSubstr("line 1"), HasSubstr("'fast' is no rate above 0")));
    EXPECT_THAT(refusal("hccs_rate = 0"), HasSubstr("'0' is no rate above 0"));
    EXPECT_THAT(refusal("flag = -1"), HasSubstr("'-1' is no time"));
    EXPECT_THAT(refusal("flag = nan"), HasSubstr("'nan' is no time"));
    EXPECT_THAT(refusal("group = 0"), HasSubstr("1 to 4096"));
    EXPECT_THAT(refusal("colour = 5"), AllOf(HasSubstr("no 'colour'"), HasSubstr("vector_rate")));
    EXPECT_THAT(DeviceModel::read("/nowhere/device.txt").status().message(),
                HasSubstr("cannot read the device model /nowhere/device.txt: No such file"));
    EXPECT_THAT(DeviceModel::read("/").status().message(), HasSubstr("cannot read the device model /: Is a directory"));
}

TEST(SharedBandwidth, OneUserHasItAll) {
    time::SharedBandwidth rate(2);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 2000), 1000);
    EXPECT_DOUBLE_EQ(rate.reserve(5000, 20), 5010);
}

TEST(SharedBandwidth, UsersAtTheSameTimeTakeTurns) {
    time::SharedBandwidth rate(1);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 1280), 1280);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 1280), 2560);
}

TEST(SharedBandwidth, AUserThatAsksLaterForAnEarlierTimeFindsItFree) {
    time::SharedBandwidth rate(1);
    EXPECT_DOUBLE_EQ(rate.reserve(12800, 1280), 14080);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 1280), 1280);
}

}  // namespace
}  // namespace npushmem::npu
