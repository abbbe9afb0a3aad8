// expect: conversion from .* to non-scalar type|no viable conversion
// Nor can such a block be turned into one to write.
#include "memsim/slow_matrix.hpp"

#ifdef CONTROL
void take(redblue::SlowMatrix& A) {
#else
void take(const redblue::SlowMatrix& A) {
#endif
  const redblue::Block block = A.whole();
  static_cast<void>(block);
}
