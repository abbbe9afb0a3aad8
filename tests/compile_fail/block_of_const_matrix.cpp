// expect: conversion from .* to non-scalar type|no viable conversion
// A block of a const matrix does not convert to a writable block.
#include "memsim/slow_matrix.hpp"

#ifdef CONTROL
void take(redblue::SlowMatrix& A) {
#else
void take(const redblue::SlowMatrix& A) {
#endif
  const redblue::Block block = A.whole();
  static_cast<void>(block);
}
