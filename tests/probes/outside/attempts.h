/* A program of several attempts: the first argument says which is made, the
 * others with what. */
#ifndef ATTEMPTS_H
#define ATTEMPTS_H

#include "../probe.h"

struct attempt {
	const char *name;
	int arguments;
	int (*make)(char **with);
};

#define ATTEMPTS(...)                                                          \
	int main(int argc, char **argv)                                        \
	{                                                                      \
		static const struct attempt attempts[] = {__VA_ARGS__, {0}};   \
		return attempt(attempts, argc, argv);                          \
	}

static inline int attempt(const struct attempt *known, int argc, char **argv)
{
	for (; argc > 1 && known->name; known++)
		if (!strcmp(known->name, argv[1]) && known->arguments == argc - 2)
			return known->make(argv + 2);
	fprintf(stderr, "no such attempt, or another number of arguments\n");
	return 2;
}

#endif
