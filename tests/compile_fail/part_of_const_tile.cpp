// expect: conversion from .* to non-scalar type|no viable conversion
#include "memsim/machine.hpp"

// A part of a const tile does not convert to a view that arithmetic may change.
#ifdef CONTROL
void change(redblue::Tile& tile) {
#else
void change(const redblue::Tile& tile) {
#endif
  const redblue::View part = tile.part({0, 1}, {0, 1});
  *part.at(0, 0) = 1;
}
