#pragma once
// Runs that tests trace.

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/run/run.hpp"
#include "runtime/system/text_file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {

inline Request request(const std::string& kernel, const Shape& shape, Index M, Index prefetch = 1) {
  Request request;
  request.kernel = kernel;
  std::tie(request.n, request.m, request.d) = std::tuple(shape.n, shape.m, shape.d);
  request.M = M;
  request.prefetch = prefetch;
  return request;
}

// Makes a word of sums weigh two words.
inline Request with_wide_sums(Request request) {
  request.word_bytes = 2;
  request.sum_bytes = 4;
  return request;
}

// Sizes that no block size divides.
inline std::vector<Request> requests() {
  return {request("backward/small", {37, 29, 11}, 100),
          request("backward/small", {7, 5, 3}, 20),
          request("backward/rows", {50, 41, 7}, 700),
          request("backward/rows", {50, 41, 7}, 900, 3),
          request("backward/large", {33, 21, 5}, 400),
          request("forward/flash", {45, 31, 6}, 300),
          request("backward/rows-q", {40, 33, 9}, 300),
          request("matmul/blocked", {13, 17, 10}, 50),
          with_wide_sums(request("backward/small", {37, 29, 11}, 150)),
          with_wide_sums(request("backward/columns", {50, 41, 7}, 900)),
          with_wide_sums(request("forward/columns", {50, 41, 7}, 500))};
}

// Traces a run into a file. Returns the kernel's part of the run, and the text of the file.
template <class Follow>
std::pair<Part, std::string> followed(const Request& request, const Follow& follow) {
  const TemporaryDirectory directory(TemporaryDirectory::in_memory());
  TextFile file(directory / "trace");
  const auto on_each = [&](Machine& machine, const Plan& plan, const std::function<void()>& go) {
    follow(machine, plan, file, go);
  };
  Part part = run(request, Topology(), {.kernel = on_each, .peak_gflops = false}).kernel;
  file.finish();
  file.commit();
  return {std::move(part), content_of(directory / "trace")};
}

}  // namespace redblue
