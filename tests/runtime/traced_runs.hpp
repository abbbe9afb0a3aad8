#pragma once
// Runs that tests trace.

#include <string>
#include <tuple>
#include <vector>

#include "runtime/experiment.hpp"

namespace redblue {

inline Request request(const std::string& kernel, const Shape& shape, Index M, Index prefetch = 1) {
  Request request;
  request.kernel = kernel;
  std::tie(request.n, request.m, request.d) = std::tuple(shape.n, shape.m, shape.d);
  request.M = M;
  request.prefetch = prefetch;
  return request;
}

// Ragged sizes everywhere.
inline std::vector<Request> requests() {
  return {
      request("backward/small", {37, 29, 11}, 100), request("backward/small", {7, 5, 3}, 20),
      request("backward/rows", {50, 41, 7}, 700),   request("backward/rows", {50, 41, 7}, 900, 3),
      request("backward/large", {33, 21, 5}, 400),  request("forward/flash", {45, 31, 6}, 300),
      request("backward/rows-q", {40, 33, 9}, 300), request("matmul/blocked", {13, 17, 10}, 50)};
}

}  // namespace redblue
