// main() of a command for a user's kernels: see tools/gate/own_kernel.hpp.

#include "tools/gate/own_kernel.hpp"

int main(int argc, char** argv) {
  return redblue::own_kernels_command(argc, argv);
}
