// The registry makes a kernel when its name is requested. The name in the list is the kernel's
// name, and each way to a kernel leads to the same object.

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"

namespace redblue {
namespace {

TEST(Registry, FindsEachKernelByItsName) {
  for (const KernelList* all : {&kernels(), &sparse_kernels()}) {
    for (const Kernel& kernel : *all) {
      EXPECT_EQ(all->find(kernel.name), &kernel) << kernel.name;
      EXPECT_EQ(&find_kernel(kernel.name), &kernel) << kernel.name;
    }
    EXPECT_EQ(all->find("backward"), nullptr);
    EXPECT_EQ(all->find(""), nullptr);
  }
}

TEST(Registry, ReadsEachSpelling) {
  for (const KernelName& name : all_kernel_names()) {
    const auto found = parse_kernel_name(name.text());
    ASSERT_TRUE(found) << name.text();
    EXPECT_EQ(found->kernel, name.kernel) << name.text();
    EXPECT_EQ(found->sharing, name.sharing) << name.text();
  }
  // These kernels have no form with shared keys.
  EXPECT_FALSE(parse_kernel_name("matmul/blocked-shared"));
  EXPECT_FALSE(parse_kernel_name("backward/sparse-rows-shared"));
  EXPECT_FALSE(parse_kernel_name("-shared"));
}

}  // namespace
}  // namespace redblue
