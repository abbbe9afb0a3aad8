#include "runtime/run/rank_resumption.hpp"

#include <algorithm>

#include "runtime/run/rank_store.hpp"

namespace redblue {

Links links_since(const Links& before, const Links& now) {
  Links since = now;
  for (const auto& [link, count] : before) {
    LinkCount& its = since.at(link);
    its.words -= count.words;
    its.messages -= count.messages;
    if (its == LinkCount()) {
      since.erase(link);
    }
  }
  return since;
}

void add_links(const Links& more, Links& links) {
  for (const auto& [link, count] : more) {
    links[link] += count;
  }
}

RankResumption::RankResumption(const Request& request, const std::string& name,
                               const RankCheckpoints::Facts& facts, RankHome& home,
                               Transport& transport, bool dealt)
    : request_(request),
      home_(&home),
      transport_(&transport),
      dealt_(dealt),
      checkpoints_(folder_of_rank(request, transport.rank()), name) {
  told_.resumed = checkpoints_.found();
  progress_ = checkpoints_.resume(home, facts);
  told_.units = progress_.done;
  home.note_changes();
  at_start_ = transport.links();
  of_all_ = progress_.exchanges;
  for (const std::string& of_rank : transport.gather(std::to_string(progress_.exchanges))) {
    of_all_ = std::min<Index>(of_all_, std::stoll(of_rank));
  }
}

RankSteps RankResumption::steps() {
  const Index dealings = dealt_ ? 1 : 0;
  RankSteps steps{.exchanges = std::max<Index>(of_all_ - dealings, 0),
                  .stage = progress_.stage,
                  .units = progress_.units};
  if (progress_.done > 0) {
    steps.before = progress_.counted;
  }
  steps.exchanged = [this, dealings](Index stages) { exchanged(stages + dealings); };
  steps.worked = [this](Index stage, Index units, const RunCounts& counts) {
    worked(stage, units, counts);
  };
  return steps;
}

Links RankResumption::links_before() const {
  return of_all_ == 0 ? Links() : progress_.links[static_cast<std::size_t>(of_all_ - 1)];
}

// What this rank had before came again: it is the same.
void RankResumption::exchanged(Index exchanges) {
  if (exchanges <= progress_.exchanges) {
    home_->take_changes();
    return;
  }
  Links links = links_before();
  add_links(links_since(at_start_, transport_->links()), links);
  progress_.exchanges = exchanges;
  progress_.links.push_back(std::move(links));
  keep();
}

void RankResumption::worked(Index stage, Index units, const RunCounts& counts) {
  progress_.done += units - (stage == progress_.stage ? progress_.units : 0);
  progress_.stage = stage;
  progress_.units = units;
  progress_.counted = counts;
  keep();
}

void RankResumption::keep() {
  if (request_.store->options.before_each) {
    request_.store->options.before_each();
  }
  checkpoints_.keep(progress_, *home_);
  told_.checkpoints = checkpoints_.written();
  told_.bytes = checkpoints_.bytes();
}

}  // namespace redblue
