#pragma once
// Returns the message of an exception, and checks its type.

#include <exception>
#include <string>
#include <typeinfo>

#include <gtest/gtest.h>

namespace redblue {

// Returns the message that `call` throws. Expects exactly the type `Exception`, not a derived
// class.
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
