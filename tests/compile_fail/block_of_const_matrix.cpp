// expect: conversion from .* to non-scalar type|no viable conversion
// Such a block does not convert to one that may be written.
#include "memsim/slow_matrix.hpp"

#ifdef CONTROL
void take(redblue::SlowMatrix& A) {
#else
void take(const redblue::SlowMatrix& A) {
#endif
  const redblue::Block block = A.whole();
  static_cast<void>(block);
}
