#pragma once
// Attention problems, or their gradients, in buffers of the caller, for one call of attention.hpp.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.hpp"
#include "runtime/run/attention.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/inputs.hpp"

namespace redblue {

inline constexpr float kUntouched = 7;

// A problem with operands drawn from a seed. Every word of its results is still `kUntouched`.
struct Called {
  explicit Called(AttentionProblem of, bool backward = false, std::uint64_t seed = 3)
      : problem(std::move(of)) {
    const Index kv_heads = problem.kv_heads == 0 ? problem.heads : problem.kv_heads;
    const auto add = [&](const Signature& operand, Buffers& to) -> Buffer& {
      const Index heads = operand.rows == &Shape::m ? kv_heads : problem.heads;
      return to[std::string(operand.name)] = buffer_for(operand, problem.shape, heads);
    };
    Problem plain(problem.shape);
    plain.inputs = Inputs::plain;
    for (const Signature& operand : {kQ, kK, kV, kdO}) {
      if ((operand.name == "V" && problem.sharing != Sharing::none) ||
          (operand.name == "dO" && !backward)) {
        continue;
      }
      Buffer& words = add(operand, given);
      const std::size_t each = words_of(operand, problem.shape);
      for (std::size_t head = 0; head * each < words.size(); ++head) {
        fill_input(operand.name, plain, seed + head, 1, 0, operand.rows_of(problem.shape),
                   std::span(words).subspan(head * each, each));
      }
    }
    for (const Signature& operand :
         of_sharing(backward ? std::vector{kdQ, kdK, kdV} : std::vector{kO, kL}, problem.sharing)) {
      std::ranges::fill(add(operand, results), kUntouched);
    }
  }

  AttentionRun call(const AttentionOptions& options) {
    return results.contains("dQ")
               ? gradients(problem,
                           {.Q = given["Q"],
                            .K = given["K"],
                            .V = given["V"],
                            .dO = given["dO"],
                            .O = given["O"],
                            .L = given["L"]},
                           {.dQ = results["dQ"], .dK = results["dK"], .dV = results["dV"]}, options)
               : attention(problem, {.Q = given["Q"], .K = given["K"], .V = given["V"]},
                           {.O = results["O"], .L = results["L"]}, options);
  }
  [[nodiscard]] bool untouched() const {
    return std::ranges::all_of(results, [](const auto& result) {
      return std::ranges::count(result.second, kUntouched) == std::ssize(result.second);
    });
  }

  using Buffer = std::vector<float>;
  AttentionProblem problem;
  Buffers given, results;
};

}  // namespace redblue
