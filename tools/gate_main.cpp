// main() of a command for kernels of a user's own: see tools/own_kernel.hpp.

#include "tools/own_kernel.hpp"

int main(int argc, char** argv) {
  return redblue::own_kernels_command(argc, argv);
}
