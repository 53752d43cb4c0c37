#pragma once

#ifndef __has_feature
#define __has_feature(x) 0
#endif

/* Whether AddressSanitizer is built in: it reserves more addresses than any limit leaves, and its
 * reports, at the end of a process, are wanted. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { MD_SANITIZED = 1 };
#else
enum { MD_SANITIZED = 0 };
#endif
