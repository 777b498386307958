// Parts of C++ signatures, of names as compilers mangle them.
#include "support/signature.h"

#include <gmock/gmock.h>

namespace klap {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Signature, BaseNameIsWhatPeopleType) {
  EXPECT_EQ("visit", base_name("visit"));
  EXPECT_EQ("visit", base_name("visit(int*, int)"));
  EXPECT_EQ("visit", base_name("void graph::visit<3, Pair<int, long> >(Pair<int, long>*)"));
  EXPECT_EQ("visit", base_name("(anonymous namespace)::visit(void (*)(int))"));
  EXPECT_EQ("each", base_name("void each<parent(int*)::{lambda(int)#1}>(parent(int*)::{lambda(int)#1})"));
  EXPECT_EQ("", base_name(""));
}

TEST(Signature, ParametersAreSplitOutsideOfBrackets) {
  EXPECT_THAT(parameter_types("visit(int*, int)"), ElementsAre("int*", "int"));
  EXPECT_THAT(parameter_types("void f<int>(Pair<int, long>, void (*)(int*, int), int (&) [3])"),
              ElementsAre("Pair<int, long>", "void (*)(int*, int)", "int (&) [3]"));
  for (const char* const name : {"visit", "visit()", "visit(void)", "", ")", "a)", "operator<(int)"})
    EXPECT_THAT(parameter_types(name), IsEmpty()) << name;
}

TEST(Signature, LongTemplateArgumentsAreShortened) {
  EXPECT_EQ("Pair<int, long>", shortened("Pair<int, long>"));
  EXPECT_EQ("Table<...>*", shortened("Table<std::pair<long, long>, Hash<long> >*"));
  EXPECT_EQ("a<...>::b<3>", shortened("a<std::integral_constant<int, 3> >::b<3>"));
  EXPECT_EQ("damaged<std::integral_constant<int", shortened("damaged<std::integral_constant<int"));
}

TEST(Signature, OfAMangledName) {
  EXPECT_EQ("child(int*, int)", signature_of("_Z5childPii"));
  EXPECT_EQ("child", signature_of("child"));
  EXPECT_EQ("other(int*)", signature_of("_ZN12_GLOBAL__N_15otherEPi"));
  EXPECT_EQ("scale<3>(float*)", signature_of("_Z5scaleILi3EEvPf"));
  EXPECT_EQ("go(int*, int)", signature_of("_Z2goPii$3")) << "with a suffix of its unit";
  EXPECT_EQ("many(...)", signature_of("_Z4manyPiPfPdPlPmPsPtPiPfPdPlPmPsPt"));
}

TEST(Signature, TextsWithMangledNames) {
  EXPECT_EQ("launches child(int*, int) (line 4:2), _Zebra is none",
            with_signatures("launches _Z5childPii (line 4:2), _Zebra is none"));
  EXPECT_EQ("", with_signatures(""));
  EXPECT_EQ("is_Z5childPii", with_signatures("is_Z5childPii"));
}

}  // namespace
}  // namespace klap
