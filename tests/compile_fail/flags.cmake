# A dropped [[nodiscard]] value is only a warning by default. Here it is an error, as in the other cases.
set(flags -std=c++20 -Werror=unused-result -I ${SOURCE_DIR})
