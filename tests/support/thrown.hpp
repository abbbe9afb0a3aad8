#pragma once
// The type and the message of what a call throws.

#include <exception>
#include <string>
#include <typeinfo>

#include <gtest/gtest.h>

namespace redblue {

// The message of what `call` throws, which must be an Exception and of no derived class.
template <class Exception, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    EXPECT_TRUE(typeid(error) == typeid(Exception)) << typeid(error).name() << ": " << error.what();
    return error.what();
  } catch (...) {
    ADD_FAILURE() << "no std::exception";
    return "no std::exception";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace redblue
