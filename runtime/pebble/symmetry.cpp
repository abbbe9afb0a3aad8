#include "runtime/pebble/symmetry.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace redblue {
namespace {

constexpr std::size_t kMostRenamings = 5040;
constexpr Index kMostTries = 2'000'000;  // tries of a word as the image of another

// Backtracking search. Words get their images one by one. If all words of a term have images, the
// image of the term must be a term.
class Automorphisms {
 public:
  explicit Automorphisms(const Terms& terms) : terms_(terms), colors_(terms.vertex.size()) {
    for (Index t = 0; t < std::ssize(terms_.terms); ++t) {
      twice_ = !number_.emplace(key(terms_[t]), t).second || twice_;
    }
    color();
    order();
  }

  std::vector<Renaming> all() {
    Renaming identity{};
    for (std::size_t k = 0; k < kMostWords; ++k) {
      identity.words[k] = identity.terms[k] = static_cast<std::uint8_t>(k);
    }
    found_ = {identity};
    if (!twice_) {
      image_ = identity;
      extend(0, 0);
    }
    return std::move(found_);
  }

 private:
  using Key = std::tuple<Set, Set, Index>;
  static Key key(const PebbleTerm& term) { return {term.operands, term.sliding, term.target}; }

  // Colors the words so that a renaming maps each word to a word of its color. Each round refines
  // the colors by the surrounding words.
  void color() {
    for (Index word = 0; word < terms_.words(); ++word) {
      colors_[static_cast<std::size_t>(word)] =
          (count(terms_.added_to(word)) * 2 + ((terms_.results & bit(word)) != 0 ? 1 : 0)) * 2 *
              kMostWords +
          count(terms_.users(word));
    }
    for (int round = 0; round < 4; ++round) {
      using Around = std::vector<std::vector<Index>>;
      std::vector<std::pair<Index, Around>> seen(colors_.size());
      for (Index word = 0; word < terms_.words(); ++word) {
        auto& [own, around] = seen[static_cast<std::size_t>(word)];
        own = colors_[static_cast<std::size_t>(word)];
        each(terms_.added_to(word), [&, &into = around](Index t) { into.push_back(look(t, 0)); });
        each(terms_.users(word), [&, &into = around](Index t) { into.push_back(look(t, 1)); });
        std::ranges::sort(around);
      }
      std::map<std::pair<Index, Around>, Index> names;
      for (const auto& each_seen : seen) {
        names.emplace(each_seen, std::ssize(names));
      }
      for (std::size_t word = 0; word < colors_.size(); ++word) {
        colors_[word] = names.at(seen[word]);
      }
    }
  }
  [[nodiscard]] std::vector<Index> look(Index t, Index role) const {
    std::vector<Index> operands;
    each(terms_[t].operands,
         [&](Index word) { operands.push_back(colors_[static_cast<std::size_t>(word)]); });
    std::ranges::sort(operands);
    operands.push_back(colors_[static_cast<std::size_t>(terms_[t].target)]);
    operands.push_back(role);
    return operands;
  }

  // Orders the words so that terms are complete early.
  void order() {
    Set placed = 0;
    std::vector<bool> complete(terms_.terms.size());
    while (std::ssize(order_) < terms_.words()) {
      Index best = -1, most = -1;
      for (Index word = 0; word < terms_.words(); ++word) {
        if ((placed & bit(word)) != 0) {
          continue;
        }
        Index near = 0;
        each(terms_.added_to(word) | terms_.users(word),
             [&](Index t) { near += count(all_words(t) & placed); });
        if (near > most) {
          most = near;
          best = word;
        }
      }
      placed |= bit(best);
      order_.push_back(best);
      completes_.emplace_back();
      for (Index t = 0; t < std::ssize(terms_.terms); ++t) {
        if (!complete[static_cast<std::size_t>(t)] && (all_words(t) & ~placed) == 0) {
          complete[static_cast<std::size_t>(t)] = true;
          completes_.back().push_back(t);
        }
      }
    }
  }
  [[nodiscard]] Set all_words(Index t) const { return terms_[t].operands | bit(terms_[t].target); }

  void extend(std::size_t at, Set taken) {
    if (at == order_.size()) {
      if (image_.words != found_.front().words) {
        found_.push_back(image_);
      }
      return;
    }
    const Index word = order_[at];
    for (Index to = 0; to < terms_.words(); ++to) {
      if ((taken & bit(to)) != 0 ||
          colors_[static_cast<std::size_t>(to)] != colors_[static_cast<std::size_t>(word)]) {
        continue;
      }
      if (found_.size() >= kMostRenamings || ++tries_ > kMostTries) {
        return;
      }
      image_.words[static_cast<std::size_t>(word)] = static_cast<std::uint8_t>(to);
      if (terms_kept(at)) {
        extend(at + 1, taken | bit(to));
      }
    }
  }
  bool terms_kept(std::size_t at) {
    return std::ranges::all_of(completes_[at], [&](Index t) {
      const PebbleTerm& term = terms_[t];
      const auto to =
          number_.find({renamed(term.operands, image_.words), renamed(term.sliding, image_.words),
                        Index{image_.words[static_cast<std::size_t>(term.target)]}});
      if (to == number_.end()) {
        return false;
      }
      image_.terms[static_cast<std::size_t>(t)] = static_cast<std::uint8_t>(to->second);
      return true;
    });
  }

  const Terms& terms_;
  std::map<Key, Index> number_;  // by term
  bool twice_ = false;           // a term is there twice, so its image is ambiguous
  std::vector<Index> colors_;
  std::vector<Index> order_;
  std::vector<std::vector<Index>> completes_;  // the terms that each word of the order completes
  Renaming image_{};
  std::vector<Renaming> found_;
  Index tries_ = 0;
};

}  // namespace

std::vector<Renaming> symmetries(const Terms& terms) {
  return Automorphisms(terms).all();
}

}  // namespace redblue
