# A dropped [[nodiscard]] value is only a warning by default; here it is a case like others.
set(flags -std=c++20 -Werror=unused-result -I ${SOURCE_DIR})
