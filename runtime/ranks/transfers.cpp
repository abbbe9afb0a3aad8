#include "runtime/ranks/transfers.hpp"

#include <algorithm>
#include <utility>

#include "kernels/attention.hpp"

namespace redblue {
namespace {

Range shifted(Range range, Index by) {
  return {range.begin + by, range.end + by};
}

class Listing {
 public:
  explicit Listing(const RankPart& part) : part_(part), of_(part.of()) {}

  // Rows of queries, exchanged with each other rank of the row.
  void bring_rows(const Signature& matrix) {
    ++order_;
    for (Index column = 0; column < of_.grid().columns; ++column) {
      if (column != part_.column() && part_.computes()) {
        const Index other = of_.rank_of(part_.row(), column);
        const Range theirs = of_.own_queries(part_.row(), column);
        add(matrix, matrix.name, other, part_.rank(), theirs, theirs);
        add(matrix, matrix.name, part_.rank(), other, part_.own_queries(), part_.own_queries());
      }
    }
  }

  // Keys with their values, exchanged with each other rank of the column. They go group by group,
  // so that work on the first group may begin before the last group has arrived.
  void bring_keys(const std::vector<Signature>& matrices) {
    for (Index group = 0; group < std::ssize(of_.key_groups(part_.column())); ++group) {
      ++order_;
      for (Index row = 0; row < of_.grid().rows; ++row) {
        if (row != part_.row()) {
          const Index other = of_.rank_of(row, part_.column());
          bring_keys(matrices, group, {other, row}, {part_.rank(), part_.row()});
          bring_keys(matrices, group, {part_.rank(), part_.row()}, {other, row});
        }
      }
    }
  }

  // Partial results of key groups for rows of queries, sent to the ranks that own these rows.
  void merge_queries(const Signature& matrix) {
    ++order_;
    for (Index column = 0; column < of_.grid().columns; ++column) {
      if (column != part_.column() && part_.computes()) {
        const Index other = of_.rank_of(part_.row(), column);
        merge(matrix, {other, of_.key_groups(column)}, part_.rank(), part_.queries(),
              part_.own_queries());
        merge(matrix, {part_.rank(), of_.key_groups(part_.column())}, other, part_.queries(),
              of_.own_queries(part_.row(), column));
      }
    }
  }

  // Partial results of query groups for keys, sent to the ranks that own these keys.
  void merge_keys(const Signature& matrix) {
    ++order_;
    for (Index row = 0; row < of_.grid().rows; ++row) {
      if (row != part_.row()) {
        const Index other = of_.rank_of(row, part_.column());
        merge(matrix, {other, of_.query_groups(row)}, part_.rank(), part_.keys(), part_.own_keys());
        merge(matrix, {part_.rank(), of_.query_groups(part_.row())}, other, part_.keys(),
              of_.own_keys(row, part_.column()));
      }
    }
  }

  void bring_sum() {
    const Index d = part_.plan().problem.shape.d;
    const std::vector<Segment>& segments = of_.segments();
    for (std::size_t k = 1; k < segments.size(); ++k) {
      const Index from = segments[k - 1].rank, to = segments[k].rank;
      if (from == part_.rank() || to == part_.rank()) {
        add(kg, kg.name, from, to, {0, d}, {0, d});
      }
    }
  }

  [[nodiscard]] std::vector<RankTransfer> take() { return std::move(all_); }

 private:
  void add(const Signature& matrix, std::string_view becomes, Index from, Index to, Range sent,
           Range received, Index group = 0) {
    if (sent.size() > 0) {
      all_.push_back({std::string(matrix.name), std::string(becomes), from, to, sent, received,
                      matrix.cols_of(part_.plan().problem.shape), group, order_});
    }
  }

  struct InColumn {
    Index rank, row;
  };
  // The keys of a group that one rank owns and another needs.
  void bring_keys(const std::vector<Signature>& matrices, Index group, InColumn from, InColumn to) {
    const Index groups = std::ssize(of_.key_groups(part_.column()));
    const Ranges there = {
        common(of_.own_keys(from.row, part_.column()), keys_of_group(part_.keys(), groups, group))};
    if (there.front().size() <= 0) {
      return;
    }
    for (const Range keys : common(there, of_.needed_keys(to.row, part_.column()))) {
      for (const Signature& matrix : matrices) {
        add(matrix, matrix.name, from.rank, to.rank, keys, keys, group);
      }
    }
  }

  struct Sender {
    Index rank;
    const std::vector<Index>& groups;
  };
  // Sends a copy of the receiver's own rows for each group of the sender. At the receiver it is one
  // of the copies of all groups.
  void merge(const Signature& matrix, const Sender& sender, Index to, Index rows, Range own) {
    for (std::size_t k = 0; k < sender.groups.size(); ++k) {
      const Index first = sender.groups[k] * own.size();
      add(matrix, merged_name(matrix.name), sender.rank, to,
          shifted(own, static_cast<Index>(k) * rows), {first, first + own.size()});
    }
  }

  const RankPart& part_;
  const GridPlan& of_;
  Index order_ = 0;
  std::vector<RankTransfer> all_;
};

}  // namespace

std::vector<RankTransfer> transfers_before(const RankPart& part, std::size_t stage) {
  if (part.of().grid().ring) {
    return {};  // rows stream during the stage
  }
  const std::vector<SplitStage>& stages = part.split().stages;
  const SplitStage& its = stages[stage];
  const auto brought_before = [&](std::string_view matrix) {
    return std::any_of(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(stage),
                       [&](const SplitStage& before) { return is_among(before.brings, matrix); });
  };
  const bool first_of_place =
      its.of == StageRows::place &&
      std::none_of(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(stage),
                   [](const SplitStage& before) { return before.of == StageRows::place; });
  const Problem& problem = part.plan().problem;
  Listing listing(part);
  std::vector<Signature> matrices = part.of().kernel().given(problem);
  for (const Split::Copies& left : part.split().left_of(problem, part.plan().blocks)) {
    matrices.push_back(left.matrix);
  }
  for (const Signature& matrix : matrices) {
    if (is_among(its.merges, matrix.name)) {
      if (of_queries(matrix)) {
        listing.merge_queries(matrix);
      } else {
        listing.merge_keys(matrix);
      }
    } else if (of_queries(matrix) && is_among(its.brings, matrix.name) &&
               !brought_before(matrix.name)) {
      listing.bring_rows(matrix);
    }
  }
  if (first_of_place) {
    std::vector<Signature> keys = part.of().kernel().given(problem);
    std::erase_if(keys, [](const Signature& operand) { return !of_keys(operand); });
    listing.bring_keys(keys);
  }
  return listing.take();
}

std::vector<RankTransfer> transfers_of_sum(const RankPart& part) {
  Listing listing(part);
  listing.bring_sum();
  return listing.take();
}

std::string merged_name(std::string_view left) {
  return std::string(left) + " of own rows";
}

std::string dead_name(std::string_view result) {
  return std::string(result) + " of what meets nothing";
}

}  // namespace redblue
