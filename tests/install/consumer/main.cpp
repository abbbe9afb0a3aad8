#include <redblue/memsim/words.hpp>

int main() {
  using redblue::Words;
  return Words(6) * 7 == Words(42) ? 0 : 1;
}
