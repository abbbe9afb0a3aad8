#include "runtime/run/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/tensor_path.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

constexpr Index kLengthBytes = 8;
constexpr Index kLongestHeader = 100'000'000;  // the limit of the format's own library
constexpr std::string_view kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  Index bits = 0;
  std::optional<ElementType> read = std::nullopt;  // empty: not supported
};
constexpr Dtype kDtypes[] = {{"BOOL", 8},
                             {"F4", 4},
                             {"F6_E2M3", 6},
                             {"F6_E3M2", 6},
                             {"U8", 8},
                             {"I8", 8},
                             {"F8_E5M2", 8},
                             {"F8_E4M3", 8},
                             {"F8_E8M0", 8},
                             {"F8_E4M3FNUZ", 8},
                             {"F8_E5M2FNUZ", 8},
                             {"I16", 16},
                             {"U16", 16},
                             {"F16", 16, ElementType::float16},
                             {"BF16", 16, ElementType::bfloat16},
                             {"I32", 32},
                             {"U32", 32},
                             {"F32", 32, ElementType::float32},
                             {"C64", 64},
                             {"F64", 64, ElementType::float64},
                             {"I64", 64},
                             {"U64", 64}};

struct Tensor {
  std::string name;
  const Dtype* dtype = nullptr;
  std::vector<Index> shape;
  Index begin = 0, end = 0;  // place among the bytes of all tensors
};

std::string called(std::string_view tensor) {
  return fmt::format("tensor \"{}\"", shortened(tensor));
}

// Reads and checks the header of one file.
class Header {
 public:
  explicit Header(const InputBytes& file) : file_(file.path().string()) {
    std::array<std::byte, kLengthBytes> start{};
    if (file.read(start, 0) < start.size()) {
      refuse(
          fmt::format("{} bytes; expected a .safetensors file, which begins with the 8 bytes of "
                      "its header's length",
                      file.size()));
    }
    std::uint64_t length = 0;
    for (std::size_t i = start.size(); i-- > 0;) {
      length = length << 8U | std::to_integer<std::uint64_t>(start[i]);
    }
    if (length > std::uint64_t{kLongestHeader}) {
      refuse(fmt::format("a header of {} bytes; expected at most {}: is it a .safetensors file?",
                         length, kLongestHeader));
    }
    data_ = kLengthBytes + static_cast<Index>(length);
    if (data_ > file.size()) {
      refuse(fmt::format("truncated: {} bytes; expected a header of {} and what it says",
                         file.size(), length));
    }
    std::string text(length, ' ');
    const std::size_t got = file.read(std::as_writable_bytes(std::span(text)), kLengthBytes);
    text.resize(got);
    parse(text);
    check_bytes(file.size() - data_);
  }

  [[nodiscard]] const Tensor& find(const std::optional<std::string>& name) const {
    if (!name && tensors_.size() == 1) {
      return tensors_.front();
    }
    const auto found =
        std::ranges::find_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
    if (found != tensors_.end()) {
      return *found;
    }
    constexpr std::size_t kNamed = 8;
    std::string all;
    for (std::size_t i = 0; i < std::min(tensors_.size(), kNamed); ++i) {
      all += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", shortened(tensors_[i].name));
    }
    if (tensors_.size() > kNamed) {
      all += fmt::format(" and {} more", tensors_.size() - kNamed);
    }
    if (name) {
      refuse(fmt::format("no {}; expected {}", called(*name),
                         tensors_.empty() ? "a file with tensors" : "one of " + all));
    }
    refuse(tensors_.empty() ? "no tensors; expected one at least"
                            : fmt::format("{} tensors; expected the name of one behind a colon: {}",
                                          tensors_.size(), all));
  }
  // Returns the offset in the file at which the bytes of tensors begin.
  [[nodiscard]] Index data() const { return data_; }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw InputError(fmt::format("{}: {}", file_, why));
  }
  [[noreturn]] void refuse(const Tensor& tensor, std::string_view why) const {
    refuse(fmt::format("{}: {}", called(tensor.name), why));
  }

  void parse(const std::string& text) {
    if (!text.starts_with('{')) {
      refuse("the header does not begin with {; expected a .safetensors file");
    }
    if (const std::size_t last = text.find_last_not_of(' '); text[last] != '}') {
      refuse("the header does not end with }; expected nothing but spaces behind it");
    }
    const Json header = parse_json(text, file_ + ": the header");
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) {
        check_metadata(value);
      } else {
        tensors_.push_back(tensor(name, value));
      }
    }
  }

  void check_metadata(const Json& metadata) const {
    if (!metadata.is_object()) {
      refuse(
          fmt::format("{} is {}; expected strings by their names", kMetadata, in_short(metadata)));
    }
    for (const auto& [name, value] : metadata.items()) {
      if (!value.is_string()) {
        refuse(fmt::format("{} of {} is {}; expected a string", shortened(name), kMetadata,
                           in_short(value)));
      }
    }
  }

  [[nodiscard]] Tensor tensor(const std::string& name, const Json& json) const {
    Tensor tensor{.name = name, .dtype = nullptr, .shape = {}};
    constexpr std::string_view kKeys[] = {"dtype", "shape", "data_offsets"};
    if (!json.is_object() || json.size() != std::size(kKeys) ||
        !std::ranges::all_of(kKeys, [&](std::string_view key) { return json.contains(key); })) {
      refuse(tensor, fmt::format("{}; expected dtype, shape and data_offsets", in_short(json)));
    }
    const Json& dtype = json.at("dtype");
    const std::string type = dtype.is_string() ? dtype.get<std::string>() : "";
    const auto* known = std::ranges::find(kDtypes, type, &Dtype::name);
    if (known == std::end(kDtypes)) {
      refuse(tensor,
             fmt::format("unknown dtype {}; expected F16, BF16, F32 or F64", in_short(dtype)));
    }
    tensor.dtype = known;
    tensor.shape = whole_numbers(tensor, "shape", json);
    const std::vector<Index> offsets = whole_numbers(tensor, "data_offsets", json);
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      refuse(tensor, fmt::format("data_offsets {}; expected where its bytes begin and end",
                                 in_short(json.at("data_offsets"))));
    }
    tensor.begin = offsets[0];
    tensor.end = offsets[1];

    Words bits = known->bits;
    for (const Index extent : tensor.shape) {
      bits *= extent;
    }
    constexpr Index kByte = 8;
    const std::string what =
        fmt::format("shape {} of {}", shortened(shape_text(tensor.shape)), known->name);
    if (bits.overflowed()) {
      refuse(tensor, what + " passes 63 bits of bits; expected a smaller one");
    }
    if (bits.value() % kByte != 0) {
      refuse(tensor, fmt::format("{} has {} bits; expected whole bytes", what, bits.value()));
    }
    if (const Index bytes = bits.value() / kByte; bytes != tensor.end - tensor.begin) {
      refuse(tensor, fmt::format("data_offsets [{}, {}] have {} bytes; expected {} for {}",
                                 tensor.begin, tensor.end, tensor.end - tensor.begin, bytes, what));
    }
    return tensor;
  }

  [[nodiscard]] std::vector<Index> whole_numbers(const Tensor& tensor, std::string_view key,
                                                 const Json& json) const {
    const Json& all = json.at(key);
    std::vector<Index> numbers;
    if (all.is_array()) {
      for (const Json& number : all) {
        if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX) {
          break;
        }
        numbers.push_back(number.get<std::int64_t>());
      }
    }
    if (!all.is_array() || numbers.size() != all.size()) {
      refuse(tensor, fmt::format("{} {}; expected whole numbers below 2^63", key, in_short(all)));
    }
    return numbers;
  }

  // Checks that every byte belongs to exactly one tensor.
  void check_bytes(Index bytes) const {
    std::vector<const Tensor*> by_place;
    for (const Tensor& tensor : tensors_) {
      by_place.push_back(&tensor);
    }
    std::ranges::sort(by_place, {},
                      [](const Tensor* tensor) { return std::pair(tensor->begin, tensor->end); });
    Index end = 0;
    std::string after = "where the data begin";
    for (const Tensor* tensor : by_place) {
      if (tensor->begin != end) {
        refuse(*tensor,
               fmt::format("{}: its bytes begin at {}; expected {}, {}",
                           tensor->begin < end ? "overlap" : "hole", tensor->begin, end, after));
      }
      end = tensor->end;
      after = fmt::format("the end of {}", called(tensor->name));
    }
    if (end != bytes) {
      refuse(fmt::format("{}: {} bytes of data; expected {}, {}",
                         bytes < end ? "truncated" : "trailing bytes", bytes, end, after));
    }
  }

  std::string file_;
  Index data_ = 0;
  std::vector<Tensor> tensors_;
};

ArrayReader open_tensor(const std::filesystem::path& path) {
  const TensorPath asked = tensor_path(path).value();
  InputBytes file(asked.file, "a .safetensors file");
  const Header header(file);
  const Tensor& tensor = header.find(asked.tensor);
  const std::string name = fmt::format("{}: {}", asked.file.string(), called(tensor.name));
  if (!tensor.dtype->read) {
    throw InputError(
        fmt::format("{}: dtype {}; expected F16, BF16, F32 or F64", name, tensor.dtype->name));
  }
  return {std::move(file), name,
          ArrayLayout{.type = *tensor.dtype->read,
                      .shape = tensor.shape,
                      .offset = header.data() + tensor.begin}};
}

}  // namespace

TensorReader::TensorReader(const std::filesystem::path& path) : ArrayReader(open_tensor(path)) {}

}  // namespace redblue
