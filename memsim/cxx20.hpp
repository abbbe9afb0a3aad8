#pragma once
// Rejects an older standard with one clear line. Headers that include no other header of redblue
// include this one, so that it precedes all code of redblue.

#if __cplusplus < 202002L
#error redblue needs C++20: compile with -std=c++20
// A file that does not exist ends the compilation, before a page of errors that follow.
#define REDBLUE_STOP "redblue needs C++20"
#include REDBLUE_STOP
#endif
